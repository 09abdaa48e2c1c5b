import classes from './code-block.module.css';
import { CopyButton } from './copy-button.tsx';

interface CodeBlockProps {
  code: string;
  /** What it is: "Express", "Request body". */
  label: string;
  /** What is copied instead, when `code` masks something. */
  copyValue?: string;
  /** Lines break instead of scrolling. */
  wrap?: boolean;
  /** In pixels; what is longer scrolls. */
  heightMax?: number;
}

/** Text as it is, with its name and a copy button. Scrolls by keyboard, too. */
export function CodeBlock({ code, label, copyValue = code, wrap = false, heightMax }: CodeBlockProps) {
  return (
    <figure className={classes.figure}>
      <figcaption className={classes.caption}>
        <span>{label}</span>
        <CopyButton value={copyValue} what={label} size="compact-xs" variant="subtle" />
      </figcaption>
      <section
        className={classes.code}
        data-wrap={wrap}
        style={{ maxHeight: heightMax }}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be scrollable by keyboard
        tabIndex={0}
        aria-label={label}
      >
        <pre>
          <code>{code}</code>
        </pre>
      </section>
    </figure>
  );
}
