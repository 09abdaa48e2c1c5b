import { Fieldset, Stack, Switch, Textarea, TextInput } from '@mantine/core';
import type { UseFormReturnType } from '@mantine/form';
import { useEffect } from 'react';
import { useHasBeenTrue } from '../components/lazy-popover.tsx';
import { FilterFields } from './filter-fields.tsx';
import { focusField } from './focus-field.ts';
import { HeadersField } from './headers-field.tsx';
import { JobsField } from './jobs-field.tsx';
import { LabelsField } from './labels-field.tsx';
import { RateLimitNote } from './match-count.tsx';
import { DELIVERY_FIELDS, isOptionField, LIMITS, type WebhookField } from './webhook-checks.ts';
import type { WebhookValues } from './webhook-values.ts';

interface OptionFieldsProps {
  accountId: number;
  form: UseFormReturnType<WebhookValues>;
  focus: { field: WebhookField } | null;
}

/** The fields below “More options”, in the order of `OPTION_FIELDS`. */
export default function OptionFields({ accountId, form, focus }: OptionFieldsProps) {
  // biome-ignore lint/correctness/useExhaustiveDependencies: the form is a new object in each rendering
  useEffect(() => {
    if (focus !== null && isOptionField(focus.field)) focusField(form, focus.field);
  }, [focus]);
  // Problems of a field that a feed does not need are shown with the field, which the user can then correct.
  const hasHadProblem = useHasBeenTrue(DELIVERY_FIELDS.some((field) => form.errors[field] !== undefined));
  return (
    <Stack gap="lg" mt="md">
      <Textarea
        label="Description"
        description="For your colleagues: what it is for, and who maintains the endpoint."
        autosize
        minRows={2}
        maxRows={8}
        {...form.getInputProps('description')}
      />
      <Fieldset legend="Which events" variant="unstyled">
        <Stack gap="lg">
          <JobsField accountId={accountId} {...form.getInputProps('jobIds')} value={form.values.jobIds} />
          <FilterFields accountId={accountId} form={form} />
        </Stack>
      </Fieldset>
      {(!form.values.isFeedOnly || hasHadProblem) && <DeliveryFields accountId={accountId} form={form} />}
      <LabelsField {...form.getInputProps('labels')} value={form.values.labels} />
      <Switch
        label="Feed only"
        description="No endpoint: a consumer behind a firewall reads the events from the feed."
        {...form.getInputProps('isFeedOnly', { type: 'checkbox' })}
      />
      <Switch
        label="Active"
        description="While off, events are not sent or queued."
        {...form.getInputProps('active', { type: 'checkbox' })}
      />
    </Stack>
  );
}

/** Options of requests to the endpoint. */
function DeliveryFields({ accountId, form }: Pick<OptionFieldsProps, 'accountId' | 'form'>) {
  return (
    <>
      <Switch
        label="In order"
        description="The events of a run are sent one after another: started, errored, completed. A delivery waits until the previous one has been delivered or has failed for good."
        {...form.getInputProps('ordered', { type: 'checkbox' })}
      />
      <TextInput
        label="Rate limit"
        description="Requests per second, from 0.1 to 1,000. Retries count, too. Leave empty for no limit."
        inputMode="decimal"
        maw={220}
        {...form.getInputProps('rateLimit')}
        onChange={(event) => form.setFieldValue('rateLimit', event.currentTarget.value.trim())}
      />
      <RateLimitNote accountId={accountId} values={form.values} />
      <Switch
        label="Switch off after 410 Gone"
        description="An endpoint that returns 410 switches this webhook off at once."
        {...form.getInputProps('deactivateOn410', { type: 'checkbox' })}
      />
      <TextInput
        label="Signature header"
        description="For gateways that reject or strip Authorization: name another header."
        placeholder="Authorization"
        maxLength={LIMITS.headerName}
        spellCheck={false}
        autoCapitalize="off"
        {...form.getInputProps('signatureHeader')}
      />
      <HeadersField {...form.getInputProps('headers')} value={form.values.headers} />
      <Switch
        label="Sign with Ed25519, too"
        description="Your endpoint can verify deliveries with a public key instead of the secret. Switching it off deletes the key pair."
        {...form.getInputProps('signatureKey', { type: 'checkbox' })}
      />
    </>
  );
}
