import { Alert, Button, Group, List, Skeleton, Stack, Text, Title } from '@mantine/core';
import { IconAlertTriangle, IconCircleCheck, IconEye, IconEyeOff } from '@tabler/icons-react';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Profile } from '../api/types.ts';
import { ConfirmDialog } from '../components/confirm-dialog.tsx';
import { CodeBlock, CopiedText, CopyButton } from '../components/copy.tsx';
import { PageHeading, Problem } from '../components/page.tsx';
import { consoleUrl } from '../served-page.ts';
import { useCurrentAccount, useSession } from '../session/session.ts';
import { maskKey, profileQuery, rotateKey } from './profile.ts';

/** Page "Profile, API Access": the API key of the user (docs/contract.md#api-keys). */
export function Component() {
  const { email } = useSession();
  const profile = useQuery(profileQuery);
  return (
    <>
      <PageHeading
        title="API Access"
        subtitle={
          <>
            The API key of {email}. Anyone who has it can do everything that you can do, in all your accounts.
          </>
        }
      />
      <Stack gap="xl" maw={760}>
        {profile.isPending && (
          <Stack role="status" aria-label="Loading">
            <Skeleton h={42} />
            <Skeleton h={36} w={160} />
            <Skeleton h={130} />
          </Stack>
        )}
        {profile.isError && profile.data === undefined && (
          <Problem
            title="The API key could not be loaded"
            error={profile.error}
            onRetry={() => void profile.refetch()}
            isRetrying={profile.isFetching}
          />
        )}
        {profile.data && <ApiKeySection profile={profile.data} />}
        <Text size="sm" c="dimmed">
          For programs that several people depend on, ask an administrator for a service token: it belongs to
          an account, not to a user.
        </Text>
      </Stack>
    </>
  );
}

type Outcome = 'rotated' | 'replaced_elsewhere' | null;

/** The key, masked until the user reveals it, and its actions. */
function ApiKeySection({ profile }: { profile: Profile }) {
  const client = useQueryClient();
  const [isRevealed, setRevealed] = useState(false);
  const [outcome, setOutcome] = useState<Outcome>(null);

  async function rotate() {
    const rotation = await rotateKey(profile);
    setOutcome(rotation.kind);
    if (rotation.kind === 'rotated') {
      client.setQueryData(profileQuery.queryKey, { ...profile, api_key: rotation.apiKey });
      setRevealed(true);
    } else {
      setRevealed(false);
      await client.invalidateQueries({ queryKey: profileQuery.queryKey });
    }
  }

  return (
    <>
      {outcome !== null && <RotationNotice outcome={outcome} />}
      <section aria-labelledby="your-key">
        <Title order={2} size="h4" id="your-key" mb="xs">
          Your API key
        </Title>
        <Group gap="xs">
          <CopiedText testId="api-key">{isRevealed ? profile.api_key : maskKey(profile.api_key)}</CopiedText>
          <Group gap="xs" wrap="nowrap">
            <Button
              size="sm"
              variant="default"
              aria-pressed={isRevealed}
              leftSection={
                isRevealed ? <IconEyeOff size={16} aria-hidden /> : <IconEye size={16} aria-hidden />
              }
              onClick={() => setRevealed(!isRevealed)}
            >
              {isRevealed ? 'Hide' : 'Reveal'}
            </Button>
            <CopyButton value={profile.api_key} what="the API key" size="sm" />
          </Group>
        </Group>
      </section>
      <section aria-labelledby="use-key">
        <Title order={2} size="h4" id="use-key" mb="xs">
          Use the key
        </Title>
        <Text size="sm" mb="xs">
          Send it as <code>Authorization: Token …</code> with every request:
        </Text>
        <SampleCall apiKey={profile.api_key} isRevealed={isRevealed} />
      </section>
      <RotateSection onRotate={rotate} />
    </>
  );
}

/** Rotates the key after a confirmation that names the consequences. */
function RotateSection({ onRotate }: { onRotate: () => Promise<void> }) {
  const [isAsking, setAsking] = useState(false);
  return (
    <>
      <section aria-labelledby="rotate-key">
        <Title order={2} size="h4" id="rotate-key" mb="xs">
          Rotate the key
        </Title>
        <Text size="sm" mb="sm">
          Rotate it if someone else may have seen it. You get a new key, and the old one stops working
          immediately.
        </Text>
        <Button color="red" variant="outline" onClick={() => setAsking(true)}>
          Rotate the key…
        </Button>
      </section>
      <ConfirmDialog
        isOpen={isAsking}
        onClose={() => setAsking(false)}
        title="Rotate your API key?"
        confirmLabel="Rotate the key"
        cancelLabel="Keep the key"
        isDangerous
        problemTitle="The key was not rotated"
        onConfirm={onRotate}
      >
        <Stack gap="xs">
          <Text size="sm">The current key stops working immediately, everywhere:</Text>
          <List size="sm">
            <List.Item>
              scripts, schedules and integrations that use it stop working until they have the new one;
            </List.Item>
            <List.Item>this cannot be undone: the current key never works again.</List.Item>
          </List>
          <Text size="sm">Webhooks are not affected, and you stay signed in here.</Text>
        </Stack>
      </ConfirmDialog>
    </>
  );
}

function RotationNotice({ outcome }: { outcome: Exclude<Outcome, null> }) {
  return outcome === 'rotated' ? (
    <Alert color="green" role="status" icon={<IconCircleCheck aria-hidden />} title="The key was rotated">
      The new key is shown below. The old one no longer works: replace it wherever it was used.
    </Alert>
  ) : (
    <Alert
      color="yellow"
      role="alert"
      icon={<IconAlertTriangle aria-hidden />}
      title="The key was already rotated"
    >
      Someone who has your key, or you in another window, rotated it after this page was opened, so it was not
      rotated again. The key below is the current one. If it was not you, rotate it again.
    </Alert>
  );
}

/** A call that works when copied. The key in it is shown or masked like the key above. */
function SampleCall({ apiKey, isRevealed }: { apiKey: string; isRevealed: boolean }) {
  const account = useCurrentAccount();
  const path = account === null ? 'api/v3/profile' : `api/v3/accounts/${account.id}/webhooks/subscriptions`;
  const sample = (key: string) =>
    `curl -s '${location.origin}${consoleUrl(path)}' \\\n  -H 'Authorization: Token ${key}'`;
  return (
    <CodeBlock
      label={account === null ? 'Your profile' : `The webhooks of ${account.name}`}
      code={sample(isRevealed ? apiKey : maskKey(apiKey))}
      copyValue={sample(apiKey)}
    />
  );
}
