import { Anchor, Button, Checkbox, Group, Stack, Text, TextInput } from '@mantine/core';
import { type FormErrors, type UseFormReturnType, useForm } from '@mantine/form';
import type { EventType } from '@runhook/contract/event-types';
import { useEffect, useRef, useState } from 'react';
import { Link } from 'react-router';
import { ApiError } from '../api/api-error.ts';
import type { EndpointTest } from '../api/types.ts';
import { LeaveDialog, useLeaveGuard } from '../components/confirm-dialog.tsx';
import { Problem } from '../components/page.tsx';
import { SIGN_IN_PATH } from '../paths.ts';
import { FormWithPanel, SamplePanel } from '../sample/sample-panel.tsx';
import { ERRORED_IS_PART_OF_COMPLETED, EVENT_TEXTS, EVENT_TYPES_IN_ORDER } from '../wording/webhooks.ts';
import { EndpointField } from './endpoint-field.tsx';
import { focusField } from './focus-field.ts';
import { MoreOptions } from './more-options.tsx';
import {
  checkTestFields,
  checkWebhook,
  FIELDS_IN_ORDER,
  isOptionField,
  toFieldProblems,
  type WebhookField,
} from './webhook-checks.ts';
import type { WebhookValues } from './webhook-values.ts';

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
  /** Whether a test of these values sends the stored values of headers and options. */
  testSendsStored: (values: WebhookValues) => boolean;
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
  testSendsStored,
  testNote,
  onSave,
}: WebhookFormProps) {
  const form = useForm({ initialValues: initial, validate: checkWebhook });
  const [saveError, setSaveError] = useState<unknown>(null);
  const [shownType, setShownType] = useState(initial.eventTypes[0] ?? EVENT_TYPES_IN_ORDER[0]);
  const [isOptionsOpen, setOptionsOpen] = useState(false);
  const [focus, setFocus] = useState<{ field: WebhookField } | null>(null);
  const isSaved = useRef(false);
  const blocker = useLeaveGuard(() => !isSaved.current && form.isDirty());

  // After rendering, because fields of an endpoint may be shown only because of their problem.
  // biome-ignore lint/correctness/useExhaustiveDependencies: the form is a new object in each rendering
  useEffect(() => {
    if (focus !== null && !isOptionField(focus.field)) focusField(form, focus.field);
  }, [focus]);

  function focusFirstInvalid(problems: FormErrors) {
    const first = FIELDS_IN_ORDER.find((field) => problems[field] !== undefined);
    if (first === undefined) return;
    // The options take the focus once they are rendered.
    if (isOptionField(first)) setOptionsOpen(true);
    setFocus({ field: first });
  }

  async function save(values: WebhookValues) {
    setSaveError(null);
    isSaved.current = true;
    try {
      await onSave(values);
    } catch (error) {
      isSaved.current = false;
      const fieldProblems = error instanceof ApiError ? toFieldProblems(error.fieldProblems) : {};
      // A feed has no field for its endpoint.
      const isShown =
        Object.keys(fieldProblems).length > 0 && !(values.isFeedOnly && fieldProblems.clientUrl);
      if (!isShown) setSaveError(error);
      form.setErrors(fieldProblems);
      focusFirstInvalid(fieldProblems);
    }
  }

  /** Sends a sample and returns its result; null if form or server find problems, shown next to their fields. */
  async function test(type: EventType): Promise<EndpointTest | null> {
    const problems = checkTestFields(form.values, testSendsStored(form.values));
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
        <MainFields accountId={accountId} form={form} onEventTypeAdded={setShownType} />
        <MoreOptions
          accountId={accountId}
          form={form}
          isOpen={isOptionsOpen}
          onToggle={setOptionsOpen}
          focus={focus}
        />
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
          format={form.values.isFeedOnly ? 'runhook' : form.values.format}
          hasEndpoint={!form.values.isFeedOnly}
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

interface MainFieldsProps {
  accountId: number;
  form: UseFormReturnType<WebhookValues>;
  /** Called with an event type when it is selected. */
  onEventTypeAdded: (type: EventType) => void;
}

function MainFields({ accountId, form, onEventTypeAdded }: MainFieldsProps) {
  return (
    <>
      <TextInput label="Name" required {...form.getInputProps('name')} />
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
      <EndpointField accountId={accountId} form={form} />
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
