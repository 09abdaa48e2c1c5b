import { Stack } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { PageHeading } from '../components/page.tsx';
import { useSession } from '../session/session.ts';
import { signInMethodsQuery } from '../session/single-sign-on.tsx';
import { PasswordSection } from './password-form.tsx';
import { SessionsSection } from './sessions-section.tsx';

/** Page "Profile, Security": sessions of the user, and the password unless passwords are switched off. */
export function Component() {
  const { email } = useSession();
  const hasPasswords = useQuery(signInMethodsQuery).data?.password === true;
  return (
    <>
      <PageHeading
        title="Security"
        subtitle={`${hasPasswords ? 'Password and sessions' : 'Sessions'} of ${email}.`}
      />
      <Stack gap="xl" maw={860}>
        {hasPasswords && <PasswordSection />}
        <SessionsSection />
      </Stack>
    </>
  );
}
