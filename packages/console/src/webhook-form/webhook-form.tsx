import { Anchor, Button, Checkbox, Group, Stack, Switch, Text, Textarea, TextInput } from '@mantine/core';
import { type FormEvent, useCallback, useRef, useState } from 'react';
import { Link } from 'react-router';
import { ApiError } from '../api/api-error.ts';
import { LeaveDialog, useLeaveGuard } from '../components/confirm-dialog.tsx';
import { Problem } from '../components/page.tsx';
import { SIGN_IN_PATH } from '../paths.ts';
import { ERRORED_IS_PART_OF_COMPLETED, EVENT_TYPES_IN_ORDER, EVENT_WORDS } from '../words/webhooks.ts';
import { JobsField } from './jobs-field.tsx';
import {
  checkWebhook,
  FIELDS_IN_ORDER,
  type FieldProblems,
  LIMITS,
  problemsOfServer,
  type WebhookField,
  type WebhookValues,
} from './webhook-values.ts';

interface WebhookFormProps {
  accountId: number;
  initial: WebhookValues;
  submitLabel: string;
  /** Title of what went wrong when saving does. */
  problemTitle: string;
  cancelTo: string;
  /** Rejects with an ApiError when the server refuses. What was saved is not asked about when the page is left then. */
  onSave: (values: WebhookValues) => Promise<void>;
}

/** The fields of the spec, section 1, with problems beside them: the console's own and the server's. */
export function WebhookForm({
  accountId,
  initial,
  submitLabel,
  problemTitle,
  cancelTo,
  onSave,
}: WebhookFormProps) {
  const [values, setValues] = useState(initial);
  const [problems, setProblems] = useState<FieldProblems>({});
  const [refusal, setRefusal] = useState<unknown>(null);
  const [isPending, setPending] = useState(false);
  const elements = useRef<Partial<Record<WebhookField, HTMLElement | null>>>({});

  const latest = useRef({ values, isSaved: false });
  latest.current.values = values;
  const isDirty = useCallback(
    () => !latest.current.isSaved && JSON.stringify(latest.current.values) !== JSON.stringify(initial),
    [initial],
  );
  const blocker = useLeaveGuard(isDirty);

  function change<Field extends WebhookField>(field: Field, value: WebhookValues[Field]) {
    setValues((before) => ({ ...before, [field]: value }));
    setProblems(({ [field]: _told, ...others }) => others);
  }

  function show(found: FieldProblems) {
    setProblems(found);
    const first = FIELDS_IN_ORDER.find((field) => found[field] !== undefined);
    if (first !== undefined) elements.current[first]?.focus();
  }

  async function save(event: FormEvent) {
    event.preventDefault();
    if (isPending) return;
    setRefusal(null);
    const found = checkWebhook(values);
    if (Object.keys(found).length > 0) return show(found);
    setPending(true);
    latest.current.isSaved = true;
    try {
      await onSave(values);
    } catch (error) {
      latest.current.isSaved = false;
      const told = error instanceof ApiError ? problemsOfServer(error.fieldProblems) : {};
      if (Object.keys(told).length === 0) setRefusal(error);
      show(told);
    } finally {
      setPending(false);
    }
  }

  const register = (field: WebhookField) => (element: HTMLElement | null) => {
    elements.current[field] = element;
  };

  return (
    <form onSubmit={(event) => void save(event)} noValidate aria-label="Webhook">
      <Stack gap="lg" maw={640}>
        <TextInput
          ref={register('name')}
          label="Name"
          required
          maxLength={LIMITS.name}
          value={values.name}
          onChange={(event) => change('name', event.currentTarget.value)}
          error={problems.name}
        />
        <Textarea
          ref={register('description')}
          label="Description"
          description="For your colleagues: what it is for, and who looks after the endpoint."
          autosize
          minRows={2}
          maxRows={8}
          maxLength={LIMITS.description}
          value={values.description}
          onChange={(event) => change('description', event.currentTarget.value)}
          error={problems.description}
        />
        <Checkbox.Group
          label="Events"
          description={ERRORED_IS_PART_OF_COMPLETED}
          withAsterisk
          value={values.eventTypes}
          onChange={(chosen) =>
            change(
              'eventTypes',
              EVENT_TYPES_IN_ORDER.filter((type) => chosen.includes(type)),
            )
          }
          error={problems.eventTypes}
        >
          <Stack gap="sm" my="xs">
            {EVENT_TYPES_IN_ORDER.map((type, index) => (
              <Checkbox
                key={type}
                ref={index === 0 ? register('eventTypes') : null}
                value={type}
                label={
                  <>
                    {EVENT_WORDS[type].label}{' '}
                    <Text span size="xs" c="dimmed" ff="monospace">
                      {type}
                    </Text>
                  </>
                }
                description={EVENT_WORDS[type].fires}
              />
            ))}
          </Stack>
        </Checkbox.Group>
        <JobsField
          ref={register('jobIds')}
          accountId={accountId}
          value={values.jobIds}
          onChange={(ids) => change('jobIds', ids)}
          error={problems.jobIds}
        />
        <TextInput
          ref={register('clientUrl')}
          label="Endpoint"
          description="The address that gets the events, by POST. Answer with a 2xx within 10 seconds."
          required
          type="url"
          inputMode="url"
          placeholder="https://example.com/webhooks"
          spellCheck={false}
          autoCapitalize="off"
          value={values.clientUrl}
          onChange={(event) => change('clientUrl', event.currentTarget.value)}
          error={problems.clientUrl}
          styles={{ input: { fontFamily: 'var(--mantine-font-family-monospace)' } }}
        />
        <Switch
          ref={register('active')}
          label="Active"
          description="Switched off, it is sent nothing; what happens meanwhile is not sent later."
          checked={values.active}
          onChange={(event) => change('active', event.currentTarget.checked)}
          error={problems.active}
        />
        {refusal !== null && <SaveProblem title={problemTitle} error={refusal} />}
        <Group gap="xs">
          <Button type="submit" loading={isPending}>
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
        text="What you changed on this page is lost when you leave it."
        leaveLabel="Leave without saving"
        stayLabel="Stay here"
      />
    </form>
  );
}

/** An ended session must not take what was typed away: signing in elsewhere lets it be saved after all. */
function SaveProblem({ title, error }: { title: string; error: unknown }) {
  if (!(error instanceof ApiError && error.code === 401)) return <Problem title={title} error={error} />;
  return (
    <Stack gap={4}>
      <Problem title={title} error={error} />
      <Text size="sm">
        <Anchor component={Link} to={SIGN_IN_PATH} target="_blank" underline="always" inherit>
          Sign in in a new tab
        </Anchor>{' '}
        and come back: what you typed stays here.
      </Text>
    </Stack>
  );
}
