import {
  Alert,
  Anchor,
  Button,
  Center,
  Paper,
  PasswordInput,
  Stack,
  Text,
  TextInput,
  Title,
} from '@mantine/core';
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useEffect, useRef, useState } from 'react';
import { Navigate, useSearchParams } from 'react-router';
import { ApiError, describeProblem } from '../api/api-error.ts';
import { request } from '../api/request.ts';
import { Problem, usePageTitle } from '../components/page.tsx';
import { safeRedirectPath } from '../paths.ts';
import { consoleUrl } from '../served-page.ts';
import { ProductMark } from '../shell/shell.tsx';
import { beginSession, sessionQuery } from './session.ts';
import { describeSsoProblem, SsoButton, signInMethodsQuery } from './single-sign-on.tsx';

const PAGE_BACKGROUND = 'light-dark(var(--mantine-color-gray-0), var(--mantine-color-dark-8))';

type Fields = 'email' | 'password';

export function Component() {
  usePageTitle('Sign in');
  const [parameters] = useSearchParams();
  const session = useQuery(sessionQuery).data;
  const methods = useQuery(signInMethodsQuery);
  const ssoProblem = describeSsoProblem(parameters.get('problem'));
  const next = safeRedirectPath(parameters.get('next'));
  if (session) return <Navigate replace to={next} />;
  return (
    <Center component="main" mih="100dvh" p="md" bg={PAGE_BACKGROUND}>
      <Paper withBorder p="xl" w="100%" maw={400}>
        <Stack gap="lg">
          <ProductMark />
          <Title order={1} size="h3">
            Sign in
          </Title>
          {parameters.has('next') && next !== '/' && (
            <Text size="sm" c="dimmed">
              After signing in, you return to the page that you opened.
            </Text>
          )}
          {ssoProblem !== null && (
            <Alert color="red" role="alert" title="Sign-in failed">
              {ssoProblem}
            </Alert>
          )}
          {methods.data?.oidc && <SsoButton next={next} />}
          {methods.isError && (
            <Problem
              title="Runhook cannot be reached"
              error={methods.error}
              onRetry={() => void methods.refetch()}
              isRetrying={methods.isFetching}
            />
          )}
          {methods.data?.password && <SignInForm />}
          <Text size="sm" c="dimmed">
            {methods.data?.password &&
              'No password, or forgotten it? An administrator of your installation can set one. '}
            The API is described in the{' '}
            <Anchor href={consoleUrl('docs')} underline="always" inherit>
              API reference
            </Anchor>
            .
          </Text>
        </Stack>
      </Paper>
    </Center>
  );
}

function SignInForm() {
  const client = useQueryClient();
  const [problem, setProblem] = useState<unknown>(null);
  const [missing, setMissing] = useState<Partial<Record<Fields, string>>>({});
  const [isPending, setPending] = useState(false);
  const fields = { email: useRef<HTMLInputElement>(null), password: useRef<HTMLInputElement>(null) };
  const { email, password } = fields;
  useEffect(() => email.current?.focus(), [email]);

  async function signIn(event: FormEvent) {
    event.preventDefault();
    if (isPending) return;
    const values = { email: email.current?.value.trim() ?? '', password: password.current?.value ?? '' };
    const problems: typeof missing = {
      ...(values.email === '' && { email: 'Enter your e-mail address.' }),
      ...(values.password === '' && { password: 'Enter your password.' }),
    };
    setMissing(problems);
    setProblem(null);
    const first = (['email', 'password'] as const).find((name) => problems[name] !== undefined);
    if (first !== undefined) return fields[first].current?.focus();
    setPending(true);
    try {
      const { data } = await request('post', '/api/v3/session', { body: values });
      // Discards the data of an earlier user. The page redirects as soon as the session is set.
      await beginSession(client, data);
    } catch (error) {
      setProblem(error);
      setPending(false);
      password.current?.select();
    }
  }

  return (
    <form onSubmit={(event) => void signIn(event)} noValidate>
      <Stack>
        {problem !== null && (
          <Alert color="red" role="alert" title="Sign-in failed">
            {describeSignInProblem(problem)}
          </Alert>
        )}
        <TextInput
          ref={email}
          label="E-mail address"
          type="email"
          name="email"
          autoComplete="username"
          error={missing.email}
        />
        <PasswordInput
          ref={password}
          label="Password"
          name="password"
          autoComplete="current-password"
          error={missing.password}
          visibilityToggleButtonProps={{ 'aria-label': 'Show the password', tabIndex: 0 }}
        />
        <Button type="submit" loading={isPending}>
          Sign in
        </Button>
      </Stack>
    </form>
  );
}

/** A 401 means a wrong e-mail address or password here, not an expired session. */
function describeSignInProblem(problem: unknown): string {
  return problem instanceof ApiError && problem.code === 401 ? problem.message : describeProblem(problem);
}
