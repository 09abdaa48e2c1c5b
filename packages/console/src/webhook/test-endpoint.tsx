import { Alert, Code, Text } from '@mantine/core';
import { IconCircleCheck, IconCircleX } from '@tabler/icons-react';
import { useMutation } from '@tanstack/react-query';
import { testEndpoint, type WebhookKey } from '../api/subscriptions.ts';
import type { Verification } from '../api/types.ts';
import { GuardedButton } from '../components/guarded.tsx';
import { Problem } from '../components/page.tsx';
import { verificationWords } from '../words/deliveries.ts';

/** One test at a time, wherever it was started from. */
export function useTestEndpoint(key: WebhookKey) {
  return useMutation({ mutationFn: () => testEndpoint(key) });
}

export type EndpointTest = ReturnType<typeof useTestEndpoint>;

export function TestButton({ test, reason }: { test: EndpointTest; reason: string | null }) {
  return (
    <GuardedButton reason={reason} variant="default" loading={test.isPending} onClick={() => test.mutate()}>
      Test Endpoint
    </GuardedButton>
  );
}

/** What the endpoint answered, in words. */
export function TestOutcome({ test, url }: { test: EndpointTest; url: string }) {
  if (test.isError)
    return <Problem title="The endpoint was not tested" error={test.error} onRetry={() => test.mutate()} />;
  if (test.data === undefined) return null;
  return <Answer verification={test.data} url={url} onClose={() => test.reset()} />;
}

function Answer({
  verification,
  url,
  onClose,
}: {
  verification: Verification;
  url: string;
  onClose: () => void;
}) {
  const { isGood, title, advice } = verificationWords(verification);
  return (
    <Alert
      color={isGood ? 'green' : 'red'}
      role="status"
      title={title}
      icon={isGood ? <IconCircleCheck aria-hidden /> : <IconCircleX aria-hidden />}
      withCloseButton
      closeButtonLabel="Close the answer"
      onClose={onClose}
    >
      {advice !== null && (
        <Text size="sm" mb={4}>
          {advice}
        </Text>
      )}
      <Text size="sm">
        A signed sample was sent to <Code style={{ overflowWrap: 'anywhere' }}>{url}</Code>. Nothing of it is
        logged.
      </Text>
    </Alert>
  );
}
