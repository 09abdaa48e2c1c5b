import { Fragment } from 'react';
import type { Span } from './markup.ts';
import classes from './message-preview.module.css';

/** Renders the text of a message. Links only look like links: a preview must not lead to what a job's name contains. */
export function Spans({ spans }: { spans: readonly Span[] }) {
  return spans.map(({ text, style }, index) => {
    // biome-ignore lint/suspicious/noArrayIndexKey: spans of a text have no other identity
    return <Fragment key={index}>{renderSpan(text, style)}</Fragment>;
  });
}

function renderSpan(text: string, style: Span['style']) {
  switch (style) {
    case 'bold':
      return <strong>{text}</strong>;
    case 'italic':
      return <em>{text}</em>;
    case 'code':
      return <code>{text}</code>;
    case 'link':
      return <span className={classes.link}>{text}</span>;
    case 'plain':
      return text;
  }
}
