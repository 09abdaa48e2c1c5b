import { Anchor, Button, Checkbox, Group, Stack, Switch, Text, Textarea, TextInput } from '@mantine/core';
import { type FormErrors, type UseFormReturnType, useForm } from '@mantine/form';
import type { EventType } from '@runhook/contract/event-types';
import { useRef, useState } from 'react';
import { Link } from 'react-router';
import { ApiError } from '../api/api-error.ts';
import type { EndpointTest } from '../api/types.ts';
import { LeaveDialog, useLeaveGuard } from '../components/confirm-dialog.tsx';
import { Problem } from '../components/page.tsx';
import { SIGN_IN_PATH } from '../paths.ts';
import { FormWithPanel, SamplePanel } from '../sample/sample-panel.tsx';
import { ForeignFormatNotice } from '../targets/foreign-format-notice.tsx';
import { recognizeTarget } from '../targets/recognized-targets.ts';
import { ERRORED_IS_PART_OF_COMPLETED, EVENT_TEXTS, EVENT_TYPES_IN_ORDER } from '../wording/webhooks.ts';
import { HeadersField } from './headers-field.tsx';
import { JobsField } from './jobs-field.tsx';
import { SignatureKeyField } from './signature-key-field.tsx';
import {
  checkTestFields,
  checkWebhook,
  FIELDS_IN_ORDER,
  LIMITS,
  toFieldProblems,
  type WebhookValues,
} from './webhook-values.ts';

interface WebhookFormProps {
  accountId: number;
  initial: WebhookValues;
  submitLabel: string;
  /** Title of an error of saving. */
  problemTitle: string;
  cancelTo: string;
  /** The webhook that is edited; null for a new one. */
  webhookId: string | null;
  /** Sends a sample to the endpoint in the form. Rejects like `onSave`. */
  onTest: (values: WebhookValues, type: EventType) => Promise<EndpointTest>;
  /** Additional note about a test; null if there is none. */
  testNote: (values: WebhookValues) => string | null;
  /** Saves the form. Rejects with an ApiError if the server rejects the values. Leaving the page after a save asks nothing. */
  onSave: (values: WebhookValues) => Promise<void>;
}

/** The fields of docs/contract.md#subscriptions, each with its problems, found by the console or by the server. */
export function WebhookForm({
  accountId,
  initial,
  submitLabel,
  problemTitle,
  cancelTo,
  webhookId,
  onTest,
  testNote,
  onSave,
}: WebhookFormProps) {
  const form = useForm({ initialValues: initial, validate: checkWebhook });
  const [saveError, setSaveError] = useState<unknown>(null);
  const [shownType, setShownType] = useState(initial.eventTypes[0] ?? EVENT_TYPES_IN_ORDER[0]);
  const isSaved = useRef(false);
  const blocker = useLeaveGuard(() => !isSaved.current && form.isDirty());

  function focusFirstInvalid(problems: FormErrors) {
    const first = FIELDS_IN_ORDER.find((field) => problems[field] !== undefined);
    const node = first === undefined ? null : form.getInputNode(first);
    (node?.matches('input, textarea') ? node : node?.querySelector('input'))?.focus();
  }

  async function save(values: WebhookValues) {
    setSaveError(null);
    isSaved.current = true;
    try {
      await onSave(values);
    } catch (error) {
      isSaved.current = false;
      const fieldProblems = error instanceof ApiError ? toFieldProblems(error.fieldProblems) : {};
      if (Object.keys(fieldProblems).length === 0) setSaveError(error);
      form.setErrors(fieldProblems);
      focusFirstInvalid(fieldProblems);
    }
  }

  /** Sends a sample and returns its result; null if form or server find problems, shown next to their fields. */
  async function test(type: EventType): Promise<EndpointTest | null> {
    const problems = checkTestFields(form.values);
    const result = await (Object.keys(problems).length > 0
      ? problems
      : onTest(form.values, type).catch((error: unknown) => {
          const found = error instanceof ApiError ? toFieldProblems(error.fieldProblems) : {};
          if (Object.keys(found).length === 0) throw error;
          return found;
        }));
    if ('verification_status_code' in result) return result;
    form.setErrors(result);
    focusFirstInvalid(result);
    return null;
  }

  const fields = (
    <form onSubmit={form.onSubmit(save, focusFirstInvalid)} noValidate aria-label="Webhook">
      <Stack gap="lg" maw={640}>
        <WebhookFields accountId={accountId} form={form} onEventTypeAdded={setShownType} />
        {saveError !== null && <SaveProblem title={problemTitle} error={saveError} />}
        <Group gap="xs">
          <Button type="submit" loading={form.submitting}>
            {submitLabel}
          </Button>
          <Button component={Link} to={cancelTo} variant="default">
            Cancel
          </Button>
        </Group>
      </Stack>
      <LeaveDialog
        blocker={blocker}
        title="Leave without saving?"
        text="Your changes on this page are lost if you leave it."
        leaveLabel="Leave without saving"
        stayLabel="Stay here"
      />
    </form>
  );
  return (
    <FormWithPanel
      form={fields}
      panel={
        <SamplePanel
          accountId={accountId}
          webhook={{ id: webhookId, name: form.values.name.trim() || UNNAMED }}
          eventType={shownType}
          onEventType={setShownType}
          send={test}
          note={testNote(form.values)}
        />
      }
    />
  );
}

const UNNAMED = 'Not saved yet';

interface WebhookFieldsProps {
  accountId: number;
  form: UseFormReturnType<WebhookValues>;
  /** Called with an event type when it is selected. */
  onEventTypeAdded: (type: EventType) => void;
}

function WebhookFields({ accountId, form, onEventTypeAdded }: WebhookFieldsProps) {
  const target = recognizeTarget(form.values.clientUrl);
  return (
    <>
      <TextInput label="Name" required {...form.getInputProps('name')} />
      <Textarea
        label="Description"
        description="For your colleagues: what it is for, and who maintains the endpoint."
        autosize
        minRows={2}
        maxRows={8}
        {...form.getInputProps('description')}
      />
      <Checkbox.Group
        label="Events"
        description={ERRORED_IS_PART_OF_COMPLETED}
        withAsterisk
        {...form.getInputProps('eventTypes')}
        onChange={(chosen) => {
          const types = EVENT_TYPES_IN_ORDER.filter((type) => chosen.includes(type));
          const added = types.find((type) => !form.values.eventTypes.includes(type));
          form.setFieldValue('eventTypes', types);
          if (added !== undefined) onEventTypeAdded(added);
        }}
      >
        <Stack gap="sm" my="xs">
          {EVENT_TYPES_IN_ORDER.map((type) => (
            <Checkbox
              key={type}
              value={type}
              label={
                <>
                  {EVENT_TEXTS[type].label}{' '}
                  <Text span size="xs" c="dimmed" ff="monospace">
                    {type}
                  </Text>
                </>
              }
              description={EVENT_TEXTS[type].fires}
            />
          ))}
        </Stack>
      </Checkbox.Group>
      <JobsField accountId={accountId} {...form.getInputProps('jobIds')} value={form.values.jobIds} />
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
      />
      {target !== null && (
        <ForeignFormatNotice
          key={target.key}
          target={target}
          clientUrl={form.values.clientUrl}
          signatureHeader={form.values.signatureHeader}
        />
      )}
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
      <SignatureKeyField {...form.getInputProps('signatureKey', { type: 'checkbox' })} />
      <Switch
        label="Active"
        description="While off, events are not sent or queued."
        {...form.getInputProps('active', { type: 'checkbox' })}
      />
    </>
  );
}

/** An expired session must not discard the input: after signing in in another tab, the user can save it. */
function SaveProblem({ title, error }: { title: string; error: unknown }) {
  if (!(error instanceof ApiError && error.code === 401)) return <Problem title={title} error={error} />;
  return (
    <Stack gap={4}>
      <Problem title={title} error={error} />
      <Text size="sm">
        <Anchor component={Link} to={SIGN_IN_PATH} target="_blank" underline="always" inherit>
          Sign in in a new tab
        </Anchor>{' '}
        and come back: your input stays here.
      </Text>
    </Stack>
  );
}
