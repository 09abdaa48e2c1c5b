import { Stack } from '@mantine/core';
import { PageHeading } from '../components/page.tsx';
import { useSession } from '../session/session.ts';
import { PasswordSection } from './password-form.tsx';
import { SessionsSection } from './sessions-section.tsx';

/** Page "Profile, Security": password and sessions of the user (docs/contract.md#console-sessions). */
export function Component() {
  const { email } = useSession();
  return (
    <>
      <PageHeading title="Security" subtitle={`Password and sessions of ${email}.`} />
      <Stack gap="xl" maw={860}>
        <PasswordSection />
        <SessionsSection />
      </Stack>
    </>
  );
}
