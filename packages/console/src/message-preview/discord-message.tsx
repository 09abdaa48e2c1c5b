import { parseMarkdown } from './markup.ts';
import classes from './message-preview.module.css';
import { Spans } from './spans.tsx';

interface DiscordEmbed {
  title?: string;
  description?: string;
  url?: string;
  /** RGB as a number. */
  color?: number;
  fields?: { name: string; value: string }[];
  footer?: { text: string };
  author?: { name: string };
}

/** The part of a message that formats use. */
export interface DiscordMessage {
  content?: string;
  embeds?: DiscordEmbed[];
}

export function DiscordMessagePreview({ message }: { message: DiscordMessage }) {
  const { content = '', embeds = [] } = message;
  return (
    <div className={classes.message}>
      {content !== '' && (
        <p>
          <Spans spans={parseMarkdown(content)} />
        </p>
      )}
      {embeds.map((embed, index) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: embeds have no other identity
        <Embed key={index} embed={embed} />
      ))}
    </div>
  );
}

function Embed({ embed }: { embed: DiscordEmbed }) {
  const { title, description, url, color, fields = [], footer, author } = embed;
  const border =
    color === undefined ? 'var(--mantine-color-default-border)' : `#${color.toString(16).padStart(6, '0')}`;
  return (
    <div className={classes.bar} style={{ borderInlineStartColor: border }}>
      {author !== undefined && <p className={classes.context}>{author.name}</p>}
      {title !== undefined && (
        <p className={classes.header}>
          <span className={url === undefined ? '' : classes.link}>
            <Spans spans={parseMarkdown(title)} />
          </span>
        </p>
      )}
      {description !== undefined && (
        <p>
          <Spans spans={parseMarkdown(description)} />
        </p>
      )}
      {fields.length > 0 && (
        <dl className={classes.facts}>
          {fields.map(({ name, value }) => (
            <div key={name}>
              <dt>
                <Spans spans={parseMarkdown(name)} />
              </dt>
              <dd>
                <Spans spans={parseMarkdown(value)} />
              </dd>
            </div>
          ))}
        </dl>
      )}
      {footer !== undefined && <p className={classes.context}>{footer.text}</p>}
    </div>
  );
}
