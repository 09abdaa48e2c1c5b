import { Stack, Text, Title } from '@mantine/core';
import { CodeBlock } from '../components/copy.tsx';
import { consoleUrl } from '../served-page.ts';
import { quoteForShell } from '../wording/code.ts';

interface FeedGuideProps {
  accountId: number;
  webhookId: string;
}

/** Explains how a consumer reads the feed of a webhook. */
export default function FeedGuide({ accountId, webhookId }: FeedGuideProps) {
  const base = new URL(consoleUrl(''), location.href).href.replace(/\/$/, '');
  const url = `${base}/api/v3/accounts/${accountId}/webhooks/subscription/${webhookId}/events`;
  return (
    <Stack gap="sm" component="section" aria-labelledby="feed">
      <Title order={2} size="h4" id="feed">
        How to read the feed
      </Title>
      <Text size="sm">
        Your consumer asks for events and gets their payloads with a cursor, which it stores and sends with
        the next request. Without new events, a request waits for up to <code>wait</code> seconds. An event
        may come more than once: ignore an <code>eventId</code> that was processed already.
      </Text>
      <CodeBlock
        label="Read the first events"
        code={`curl -H "Authorization: Token $RUNHOOK_TOKEN" \\\n  ${quoteForShell(`${url}?limit=100&wait=20`)}`}
        wrap
      />
      <CodeBlock
        label="Read the next events"
        code={`# CURSOR is the cursor of the last response.\ncurl -H "Authorization: Token $RUNHOOK_TOKEN" \\\n  "${url}?after=$CURSOR&limit=100&wait=20"`}
        wrap
      />
      <Text size="sm">
        For development, <code>runhook listen</code> reads the feed and forwards each event to a local
        address.
      </Text>
    </Stack>
  );
}
