import { Button, VisuallyHidden } from '@mantine/core';
import { IconAlertTriangle, IconCheck, IconCopy } from '@tabler/icons-react';
import { useEffect, useState } from 'react';
import classes from './components.module.css';

interface CodeBlockProps {
  code: string;
  /** Name of the text: "Express", "Request body". */
  label: string;
  /** Text to copy instead of `code`, for example because `code` masks a part. */
  copyValue?: string;
  /** Whether long lines wrap instead of scrolling. */
  wrap?: boolean;
  /** Maximum height in pixels; longer text scrolls. */
  heightMax?: number;
}

/** Preformatted text with its name and a copy button. It can be scrolled by keyboard. */
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
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling element must be scrollable by keyboard
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

const FEEDBACK_MS = 2_500;
const OUTCOMES = {
  idle: { icon: IconCopy, text: null },
  copied: { icon: IconCheck, text: 'Copied' },
  rejected: { icon: IconAlertTriangle, text: 'Copy manually' },
} as const;

interface CopyButtonProps {
  /** The text to copy. A function is called on each click. */
  value: string | (() => string);
  /** Label of the button: "Copy", "Copy as curl". */
  label?: string;
  /** Name of the copied text for screen readers: "the secret". */
  what?: string;
  size?: 'compact-xs' | 'compact-sm' | 'xs' | 'sm';
  variant?: 'default' | 'subtle' | 'filled' | 'light';
  onCopied?: () => void;
}

/** A text that users copy as a whole: a key, a secret. */
export function CopiedText({ testId, children }: { testId: string; children: string }) {
  return (
    <code className={classes.copied} data-testid={testId}>
      {children}
    </code>
  );
}

/** Copies a text, and reports the result on the button and to screen readers. */
export function CopyButton({
  value,
  label = 'Copy',
  what,
  size = 'compact-sm',
  variant = 'default',
  onCopied,
}: CopyButtonProps) {
  const [outcome, setOutcome] = useState<keyof typeof OUTCOMES>('idle');
  useEffect(() => {
    if (outcome === 'idle') return;
    const timer = setTimeout(() => setOutcome('idle'), FEEDBACK_MS);
    return () => clearTimeout(timer);
  }, [outcome]);
  const { icon: Icon, text } = OUTCOMES[outcome];

  async function copy() {
    const isCopied = await copyText(typeof value === 'string' ? value : value());
    setOutcome(isCopied ? 'copied' : 'rejected');
    if (isCopied) onCopied?.();
  }

  return (
    <>
      <Button
        size={size}
        variant={variant}
        onClick={() => void copy()}
        leftSection={<Icon size={14} aria-hidden />}
        style={{ flexShrink: 0 }}
      >
        {text ?? label}
        {text === null && what !== undefined && <VisuallyHidden> {what}</VisuallyHidden>}
      </Button>
      <VisuallyHidden role="status">
        {outcome === 'copied' && `Copied ${what ?? ''}`}
        {outcome === 'rejected' && 'The browser blocked copying. Select the text and copy it manually.'}
      </VisuallyHidden>
    </>
  );
}

/** Writes a text to the clipboard. Returns false if the browser does not permit it. */
async function copyText(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyTextWithCommand(text);
  }
}

/** Copies with `execCommand`, because pages served over HTTP have no `navigator.clipboard`. */
function copyTextWithCommand(text: string): boolean {
  const previousFocus = document.activeElement;
  const field = document.createElement('textarea');
  field.value = text;
  field.setAttribute('readonly', '');
  field.style.position = 'fixed';
  field.style.opacity = '0';
  // The field must be inside an open dialog, whose focus trap would otherwise remove the selection.
  (previousFocus?.closest('[role=dialog]') ?? document.body).append(field);
  field.select();
  try {
    return document.execCommand('copy');
  } catch {
    return false;
  } finally {
    field.remove();
    if (previousFocus instanceof HTMLElement) previousFocus.focus();
  }
}
