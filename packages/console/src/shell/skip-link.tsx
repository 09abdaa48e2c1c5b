import { useHref } from 'react-router';
import classes from './skip-link.module.css';

export const CONTENT_ID = 'content';

/** The first stop of the tab key: past the header and the navigation. */
export function SkipLink() {
  // With its whole path: the page has a `<base>`, which a bare fragment would be resolved against.
  const href = useHref({ hash: CONTENT_ID });
  return (
    <a
      href={href}
      className={classes.skip}
      onClick={(event) => {
        event.preventDefault();
        document.getElementById(CONTENT_ID)?.focus();
      }}
    >
      Skip to the content
    </a>
  );
}
