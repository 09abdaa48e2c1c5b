import { parseMrkdwn } from './markup.ts';
import classes from './message-preview.module.css';
import { Spans } from './spans.tsx';

interface SlackText {
  type: string;
  text: string;
}

interface SlackElement {
  type: string;
  text?: string | SlackText;
}

interface SlackBlock {
  type: string;
  text?: SlackText;
  fields?: SlackText[];
  elements?: SlackElement[];
  accessory?: SlackElement;
}

/** The part of a message that formats use. */
export interface SlackMessage {
  text?: string;
  blocks?: SlackBlock[];
  attachments?: { color?: string; text?: string; blocks?: SlackBlock[] }[];
}

/** Shows blocks, or the text if there are none: with blocks, Slack shows the text only in notifications. */
export function SlackMessagePreview({ message }: { message: SlackMessage }) {
  const { text = '', blocks = [], attachments = [] } = message;
  return (
    <div className={classes.message}>
      {blocks.length === 0 && attachments.length === 0 && <p>{renderText({ type: 'mrkdwn', text })}</p>}
      <Blocks blocks={blocks} />
      {attachments.map((attachment, index) => (
        <div
          // biome-ignore lint/suspicious/noArrayIndexKey: attachments have no other identity
          key={index}
          className={classes.bar}
          style={{ borderInlineStartColor: attachment.color ?? 'var(--mantine-color-default-border)' }}
        >
          {attachment.text !== undefined && <p>{renderText({ type: 'mrkdwn', text: attachment.text })}</p>}
          <Blocks blocks={attachment.blocks ?? []} />
        </div>
      ))}
    </div>
  );
}

function Blocks({ blocks }: { blocks: readonly SlackBlock[] }) {
  return blocks.map((block, index) => {
    // biome-ignore lint/suspicious/noArrayIndexKey: blocks have no other identity
    return <Block key={index} block={block} />;
  });
}

function Block({ block: { type, text, fields = [], elements = [], accessory } }: { block: SlackBlock }) {
  if (type === 'divider') return <hr />;
  return (
    <div className={classes.block}>
      {text !== undefined && <p className={type === 'header' ? classes.header : ''}>{renderText(text)}</p>}
      {fields.length > 0 && (
        <div className={classes.fields}>
          {fields.map((field) => (
            <p key={field.text}>{renderText(field)}</p>
          ))}
        </div>
      )}
      {[...elements, ...(accessory === undefined ? [] : [accessory])].map((element, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: elements have no other identity
        <Element key={index} element={element} />
      ))}
    </div>
  );
}

function Element({ element: { type, text } }: { element: SlackElement }) {
  if (text === undefined) return null;
  if (typeof text === 'string') return <p className={classes.context}>{renderText({ type, text })}</p>;
  return <span className={type === 'button' ? classes.button : classes.context}>{renderText(text)}</span>;
}

function renderText({ type, text }: SlackText) {
  return <Spans spans={type === 'mrkdwn' ? parseMrkdwn(text) : [{ text, style: 'plain' }]} />;
}
