import { Alert, Button, Text, TextInput } from '@mantine/core';
import type { UseFormReturnType } from '@mantine/form';
import { recogniseFormat } from '@runhook/contract/formats';
import { IconArrowsExchange } from '@tabler/icons-react';
import type { FormatName } from '../api/types.ts';
import { useHasBeenTrue } from '../components/lazy-popover.tsx';
import { FormatField } from './format-field.tsx';
import { SourceAddresses } from './source-addresses.tsx';
import type { WebhookValues } from './webhook-values.ts';

interface EndpointFieldProps {
  accountId: number;
  form: UseFormReturnType<WebhookValues>;
}

/** The endpoint and its format, which a known address determines. */
export function EndpointField({ accountId, form }: EndpointFieldProps) {
  const { clientUrl, format, isFeedOnly } = form.values;
  const { format: formatProblem, formatOptions: optionsProblem } = form.errors;
  const hasHadProblem = useHasBeenTrue(formatProblem !== undefined || optionsProblem !== undefined);
  if (isFeedOnly)
    return (
      <>
        <Text size="sm">
          This webhook has no endpoint: your consumer reads its events from the feed. To send them to an
          endpoint, switch “Feed only” off below.
        </Text>
        {hasHadProblem && <FormatField form={form} />}
      </>
    );
  const recognised = recogniseFormat(clientUrl.trim());
  return (
    <>
      <TextInput
        label="Endpoint"
        description="The address that events are posted to. Return a 2xx within 10 seconds."
        required
        type="url"
        inputMode="url"
        placeholder="https://example.com/webhooks"
        spellCheck={false}
        autoCapitalize="off"
        styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
        {...form.getInputProps('clientUrl')}
        onChange={(event) => {
          const url = event.currentTarget.value;
          form.setFieldValue('clientUrl', url);
          form.setFieldValue('format', formatAfterChange(format, clientUrl, url));
        }}
      />
      <SourceAddresses accountId={accountId} />
      {recognised !== null && recognised.name !== format && (
        <Alert
          color="yellow"
          role="status"
          icon={<IconArrowsExchange aria-hidden />}
          title={`This is an address of ${recognised.label}`}
        >
          <Text size="sm" mb="sm">
            {recognised.label} accepts only its own messages, and rejects this format.
          </Text>
          <Button
            size="xs"
            variant="default"
            onClick={() => form.setFieldValue('format', recognised.name as FormatName)}
          >
            Set the format to {recognised.label}
          </Button>
        </Alert>
      )}
      <FormatField form={form} />
    </>
  );
}

/** Returns the format after a change of the address. A format that the user has chosen stays. */
function formatAfterChange(format: FormatName, previousUrl: string, url: string): FormatName {
  const previous = recogniseFormat(previousUrl.trim())?.name ?? 'runhook';
  const next = recogniseFormat(url.trim())?.name ?? 'runhook';
  return format === previous && next !== previous ? (next as FormatName) : format;
}
