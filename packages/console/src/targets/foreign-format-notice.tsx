import { Alert, Button, Stack, Text } from '@mantine/core';
import { IconArrowsExchange } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { useId, useState } from 'react';
import { CodeBlock } from '../components/copy.tsx';
import { Problem } from '../components/page.tsx';
import { quoteForShell } from '../wording/code.ts';
import type { RecognizedTarget } from './recognized-targets.ts';

interface ForeignFormatNoticeProps {
  target: RecognizedTarget;
  clientUrl: string;
  /** An empty string means `Authorization`. */
  signatureHeader: string;
}

/** Explains that a target requires its own format, and shows a relay to copy (`examples/relays`). */
export function ForeignFormatNotice({ target, clientUrl, signatureHeader }: ForeignFormatNoticeProps) {
  const [isOpen, setOpen] = useState(false);
  const relayId = useId();
  const relay = useQuery({
    queryKey: ['examples', 'relay'],
    queryFn: async () => (await import('../../../../examples/relays/relay.mjs?raw')).default,
    enabled: isOpen,
    staleTime: Number.POSITIVE_INFINITY,
  });
  const { name } = target;
  return (
    <Stack gap="sm" style={{ minWidth: 0 }}>
      <Alert
        color="yellow"
        role="status"
        icon={<IconArrowsExchange aria-hidden />}
        title={`${name} rejects Runhook’s payload`}
      >
        <Text size="sm" mb="sm">
          {name} requires its own message format, and Runhook’s payload is the same for every endpoint. Put a
          small relay in between: it verifies each delivery, posts it to {name} in that format, and returns a
          2xx only if {name} did. Then enter the relay’s address as the endpoint, instead of this one.
        </Text>
        <Button
          size="xs"
          variant="default"
          aria-expanded={isOpen}
          aria-controls={relayId}
          onClick={() => setOpen(!isOpen)}
        >
          {isOpen ? 'Hide the relay' : `Show the relay for ${name}`}
        </Button>
      </Alert>
      <div id={relayId} hidden={!isOpen}>
        {isOpen && (
          <Stack gap="sm">
            <CodeBlock
              label="Run the relay"
              code={runCommand(target, clientUrl.trim(), signatureHeader.trim())}
              wrap
            />
            {relay.isError && (
              <Problem
                title="The relay could not be loaded"
                error={relay.error}
                onRetry={() => void relay.refetch()}
              />
            )}
            {relay.data !== undefined && (
              <CodeBlock label="relay.mjs" code={relay.data} heightMax={HEIGHT_MAX} />
            )}
          </Stack>
        )}
      </div>
    </Stack>
  );
}

const HEIGHT_MAX = 360;

/** The user inserts the secret, which is shown once, when the webhook is saved. */
function runCommand(
  { key, relayRequirement }: RecognizedTarget,
  url: string,
  signatureHeader: string,
): string {
  return [
    '# Node 22 or newer, no packages. HMAC_SECRET is the secret of this webhook, shown once it is saved.',
    'export HMAC_SECRET=…',
    ...(relayRequirement === 'routing-key'
      ? ['export ROUTING_KEY=…  # of the integration “Events API v2”']
      : []),
    [
      `TARGET=${key}`,
      `TARGET_URL=${quoteForShell(url)}`,
      ...(signatureHeader === '' ? [] : [`SIGNATURE_HEADER=${quoteForShell(signatureHeader)}`]),
      'HOST=0.0.0.0 PORT=3004 node relay.mjs',
    ].join(' \\\n  '),
  ].join('\n');
}
