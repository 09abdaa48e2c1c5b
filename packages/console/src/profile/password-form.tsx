import { Button, PasswordInput, Stack, Text, Title } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useRef, useState } from 'react';
import { ApiError } from '../api/api-error.ts';
import { request } from '../api/request.ts';
import { Problem, toastSuccess } from '../components/page.tsx';
import { useSession } from '../session/session.ts';
import { sessionsQuery } from './sessions.ts';

type Field = 'current_password' | 'new_password';
type Problems = Partial<Record<Field, string>>;

const LABELS: Record<Field, string> = {
  current_password: 'Current password',
  new_password: 'New password',
};
const FIELDS = Object.keys(LABELS) as Field[];

/** Changes the password of the user, which needs the current one. */
export function PasswordSection() {
  const { email } = useSession();
  const client = useQueryClient();
  const form = useRef<HTMLFormElement>(null);
  const [problems, setProblems] = useState<Problems>({});
  const [error, setError] = useState<unknown>(null);
  const [isPending, setPending] = useState(false);

  function showProblems(found: Problems) {
    setProblems(found);
    const first = FIELDS.find((field) => found[field] !== undefined);
    if (first !== undefined) form.current?.querySelector<HTMLInputElement>(`[name=${first}]`)?.focus();
  }

  async function change(event: FormEvent<HTMLFormElement>) {
    event.preventDefault();
    if (isPending) return;
    const values = new FormData(event.currentTarget);
    const fieldValue = (field: Field) => String(values.get(field) ?? '');
    const missing = FIELDS.filter((field) => fieldValue(field) === '');
    setError(null);
    showProblems(Object.fromEntries(missing.map((field) => [field, 'Enter a password.'])));
    if (missing.length > 0) return;
    setPending(true);
    try {
      const body = {
        current_password: fieldValue('current_password'),
        new_password: fieldValue('new_password'),
      };
      const { data } = await request('put', '/api/v3/profile/password', { body });
      form.current?.reset();
      toastSuccess(
        data.sessions_ended === 0
          ? 'The password was changed.'
          : `The password was changed. Other sessions ended: ${data.sessions_ended}.`,
      );
      await client.invalidateQueries({ queryKey: sessionsQuery.queryKey });
    } catch (thrown) {
      const found = thrown instanceof ApiError ? describeFields(thrown.fieldProblems) : {};
      if (Object.keys(found).length === 0) setError(thrown);
      showProblems(found);
    } finally {
      setPending(false);
    }
  }

  return (
    <section aria-labelledby="password">
      <Title order={2} size="h4" id="password" mb="xs">
        Password
      </Title>
      <Text size="sm" mb="sm">
        A change ends your other sessions. Your API key stays valid.
      </Text>
      <form ref={form} onSubmit={(event) => void change(event)} noValidate>
        <Stack maw={360}>
          {error !== null && <Problem title="The password was not changed" error={error} />}
          {/* Tells password managers whose password it is. */}
          <input hidden readOnly name="username" autoComplete="username" value={email} />
          {FIELDS.map((field) => (
            <PasswordInput
              key={field}
              name={field}
              label={LABELS[field]}
              description={field === 'new_password' ? 'At least 8 characters.' : undefined}
              autoComplete={field === 'new_password' ? 'new-password' : 'current-password'}
              error={problems[field]}
              visibilityToggleButtonProps={{
                'aria-label': `Show the ${LABELS[field].toLowerCase()}`,
                tabIndex: 0,
              }}
            />
          ))}
          <Button type="submit" variant="default" loading={isPending} style={{ alignSelf: 'flex-start' }}>
            Change the password
          </Button>
        </Stack>
      </form>
    </section>
  );
}

/** Returns a sentence for each field that the API rejected. */
function describeFields(fieldProblems: ApiError['fieldProblems']): Problems {
  return Object.fromEntries(
    FIELDS.flatMap((field) => {
      const problem = fieldProblems[field];
      return problem === undefined ? [] : [[field, `${LABELS[field]} ${problem}.`]];
    }),
  );
}
