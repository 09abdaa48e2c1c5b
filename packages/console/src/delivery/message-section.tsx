import { Skeleton, Stack, Title } from '@mantine/core';
import { lazy, Suspense } from 'react';

const SentMessage = lazy(async () => ({
  default: (await import('../message-preview/message-preview.tsx')).SentMessage,
}));

interface MessageSectionProps {
  format: string;
  /** The body of the latest attempt. */
  body: string;
  webhookName: string;
}

/** The message of the latest attempt, as its target shows it. */
export function MessageSection({ format, body, webhookName }: MessageSectionProps) {
  return (
    <Stack gap="sm" component="section" aria-labelledby="message">
      <Title order={2} size="h4" id="message">
        Message
      </Title>
      <Suspense fallback={<Skeleton height={240} role="status" aria-label="Loading the message" />}>
        <SentMessage format={format} body={body} sender={webhookName} bodyLabel="Request body" />
      </Suspense>
    </Stack>
  );
}
