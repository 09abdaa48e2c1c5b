import { Button } from '@mantine/core';
import { queryOptions } from '@tanstack/react-query';
import { request } from '../api/request.ts';
import { consoleUrl } from '../served-page.ts';

/** Ways to sign in. They change only with the settings of the service. */
export const signInMethodsQuery = queryOptions({
  queryKey: ['sign-in-methods'],
  staleTime: Number.POSITIVE_INFINITY,
  queryFn: async ({ signal }) => (await request('get', '/api/v3/session/methods', { signal })).data,
});

/** Leaves the console for the identity provider, which sends the browser back to `next`. */
export function SsoButton({ next }: { next: string }) {
  const search = next === '/' ? '' : `?next=${encodeURIComponent(next)}`;
  return (
    <Button component="a" href={`${consoleUrl('api/v3/session/oidc')}${search}`}>
      Sign in with single sign-on
    </Button>
  );
}

const PROBLEMS: Readonly<Record<string, string>> = {
  busy: 'Too many sign-ins from your network. Try again in a few minutes.',
  email_missing: 'The identity provider supplies no verified e-mail address for you. Ask your administrator.',
  email_taken:
    'Another user here has your e-mail address. An administrator of your installation can link that user to you.',
  expired: 'The sign-in took more than ten minutes or was begun in another window. Try again.',
  invalid_claim:
    'The accounts that the identity provider names for you are not valid. Ask your administrator.',
  rejected: 'The identity provider did not confirm your sign-in.',
  unavailable: 'The identity provider does not respond. Try again in a few minutes.',
  unknown_user: 'You have no user here. An administrator of your installation can link one to you.',
};

/** Returns a sentence for the code in the page's address, or null if there is none. */
export function describeSsoProblem(code: string | null): string | null {
  if (code === null) return null;
  const problem = Object.hasOwn(PROBLEMS, code) ? PROBLEMS[code] : undefined;
  return problem ?? 'The sign-in at the identity provider failed. Try again.';
}
