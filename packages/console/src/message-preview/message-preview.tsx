import { Text } from '@mantine/core';
import type { JobRunEvent } from '@runhook/contract/events';
import { formatByName } from '@runhook/contract/formats';
import { CodeBlock } from '../components/copy.tsx';
import { formatJson } from '../wording/code.ts';
import { type DiscordMessage, DiscordMessagePreview } from './discord-message.tsx';
import classes from './message-preview.module.css';
import { PagerDutyAlertPreview, type PagerDutyEvent } from './pagerduty-alert.tsx';
import { type SlackMessage, SlackMessagePreview } from './slack-message.tsx';
import { TeamsCardPreview, type TeamsMessage } from './teams-card.tsx';

interface MessagePreviewProps {
  format: string;
  event: JobRunEvent;
  subscription: { id: string; name: string };
  /** Address for links in the message; null if the services have none. */
  publicUrl: string | null;
}

const HEIGHT_MAX = 360;

/** Shows the message of an event as its target shows it, and the body that is sent, with masked options. */
export default function MessagePreview({
  format: name,
  event,
  subscription,
  publicUrl,
}: MessagePreviewProps) {
  const format = formatByName(name);
  if (format === null) return null;
  const options = Object.fromEntries(Object.keys(format.options).map((option) => [option, '***']));
  const { body, nothing } = format.render({ event, subscription, consoleUrl: publicUrl, options });
  if (body === undefined)
    return (
      <Text size="sm" role="note">
        Nothing is sent to {format.label} for this event: {nothing}
      </Text>
    );
  return <SentMessage format={name} body={body} sender={subscription.name} bodyLabel="Sample payload" />;
}

interface SentMessageProps {
  format: string;
  /** The body, with masked options. */
  body: string;
  /** Name of the webhook. */
  sender: string;
  /** Label of the body in a format that no person reads. */
  bodyLabel: string;
}

/** Shows a body as its target shows it. */
export function SentMessage({ format: name, body, sender, bodyLabel }: SentMessageProps) {
  const label = formatByName(name)?.label ?? name;
  const message = renderMessage(name, body);
  const bodyBlock = (
    <CodeBlock
      label={message === null ? bodyLabel : 'Request body'}
      code={formatJson(body) ?? body}
      copyValue={body}
      wrap
      heightMax={HEIGHT_MAX}
    />
  );
  if (message === null) return bodyBlock;
  return (
    <>
      <section
        className={classes.frame}
        aria-label={`Message in ${label}`}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling element must be scrollable by keyboard
        tabIndex={0}
      >
        <p className={classes.sender}>
          {sender} <span>in {label}</span>
        </p>
        {message}
      </section>
      <details>
        <Text component="summary" size="sm" style={{ cursor: 'pointer' }}>
          Request body
        </Text>
        {bodyBlock}
      </details>
    </>
  );
}

/** Returns null for a format that no person reads. */
function renderMessage(format: string, body: string) {
  const message: unknown = JSON.parse(body);
  switch (format) {
    case 'slack':
      return <SlackMessagePreview message={message as SlackMessage} />;
    case 'teams':
      return <TeamsCardPreview message={message as TeamsMessage} />;
    case 'discord':
      return <DiscordMessagePreview message={message as DiscordMessage} />;
    case 'pagerduty':
      return <PagerDutyAlertPreview event={message as PagerDutyEvent} />;
    default:
      return null;
  }
}
