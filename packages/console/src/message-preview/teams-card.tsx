import { parseMarkdown } from './markup.ts';
import classes from './message-preview.module.css';
import { Spans } from './spans.tsx';

interface CardElement {
  type: string;
  text?: string;
  size?: string;
  weight?: string;
  isSubtle?: boolean;
  facts?: { title: string; value: string }[];
  items?: CardElement[];
  columns?: { items?: CardElement[] }[];
  actions?: CardAction[];
  inlines?: TextRun[];
}

/** Shown as it is: only other elements interpret Markdown. */
interface TextRun {
  text: string;
  size?: string;
  weight?: string;
  isSubtle?: boolean;
}

interface CardAction {
  type: string;
  title: string;
}

/** The part of an Adaptive Card, and of the message that contains it, that formats use. */
export interface TeamsMessage {
  attachments?: { content: { body?: CardElement[]; actions?: CardAction[] } }[];
}

export function TeamsCardPreview({ message }: { message: TeamsMessage }) {
  return (message.attachments ?? []).map(({ content }, index) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: cards have no other identity
    <div key={index} className={classes.message}>
      <Elements elements={content.body ?? []} />
      <Actions actions={content.actions ?? []} />
    </div>
  ));
}

function Elements({ elements }: { elements: readonly CardElement[] }) {
  return elements.map((element, index) => {
    // biome-ignore lint/suspicious/noArrayIndexKey: elements have no other identity
    return <Element key={index} element={element} />;
  });
}

const LARGE = new Set(['medium', 'large', 'extralarge']);

function Element({ element }: { element: CardElement }) {
  const { text, size = '', weight = '', isSubtle = false, facts = [], items = [], columns = [] } = element;
  const isLarge = LARGE.has(size.toLowerCase());
  const isBold = weight.toLowerCase() === 'bolder';
  return (
    <>
      {text !== undefined && (
        <p
          className={isLarge ? classes.header : isSubtle ? classes.context : ''}
          style={isBold ? { fontWeight: 600 } : {}}
        >
          <Spans spans={parseMarkdown(text)} />
        </p>
      )}
      {element.inlines !== undefined && <TextRuns runs={element.inlines} />}
      {facts.length > 0 && (
        <dl className={classes.facts}>
          {facts.map(({ title, value }) => (
            <div key={title}>
              <dt>{title}</dt>
              <dd>
                <Spans spans={parseMarkdown(value)} />
              </dd>
            </div>
          ))}
        </dl>
      )}
      <Elements elements={[...items, ...columns.flatMap((column) => column.items ?? [])]} />
      <Actions actions={element.actions ?? []} />
    </>
  );
}

function TextRuns({ runs }: { runs: readonly TextRun[] }) {
  return (
    <p>
      {runs.map(({ text, size = '', weight = '', isSubtle = false }) => (
        <span
          key={text}
          className={LARGE.has(size.toLowerCase()) ? classes.header : isSubtle ? classes.context : ''}
          style={weight.toLowerCase() === 'bolder' ? { fontWeight: 600 } : {}}
        >
          {text}
        </span>
      ))}
    </p>
  );
}

function Actions({ actions }: { actions: readonly CardAction[] }) {
  return actions.map(({ title }) => (
    <span key={title} className={classes.button}>
      {title}
    </span>
  ));
}
