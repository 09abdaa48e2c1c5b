import { NavLink, Stack, Text, VisuallyHidden } from '@mantine/core';
import { IconExternalLink, IconKey, IconWebhook } from '@tabler/icons-react';
import { NavLink as RouterNavLink } from 'react-router';
import { API_ACCESS_PATH, webhooksPath } from '../paths.ts';
import { ownUrl } from '../served-page.ts';
import { useCurrentAccount } from '../session/session.ts';
import classes from './navigation.module.css';

/** Where one can go. @param onNavigate closes the drawer of narrow screens */
export function Navigation({ onNavigate }: { onNavigate?: () => void }) {
  const account = useCurrentAccount();
  return (
    <Stack component="nav" gap="lg" aria-label="Main">
      {account !== null && (
        <Section title="Account Settings">
          <NavLink
            component={RouterNavLink}
            to={webhooksPath(account.id)}
            label="Webhooks"
            leftSection={<IconWebhook size={18} aria-hidden />}
            className={classes.link ?? ''}
            {...(onNavigate && { onClick: onNavigate })}
          />
        </Section>
      )}
      <Section title="Profile">
        <NavLink
          component={RouterNavLink}
          to={API_ACCESS_PATH}
          label="API Access"
          leftSection={<IconKey size={18} aria-hidden />}
          className={classes.link ?? ''}
          {...(onNavigate && { onClick: onNavigate })}
        />
      </Section>
      <Section title="Help">
        <NavLink
          href={ownUrl('docs')}
          target="_blank"
          rel="noreferrer"
          label={
            <>
              API reference<VisuallyHidden> (new tab)</VisuallyHidden>
            </>
          }
          leftSection={<IconExternalLink size={18} aria-hidden />}
          className={classes.link ?? ''}
        />
      </Section>
    </Stack>
  );
}

function Section({ title, children }: { title: string; children: React.ReactNode }) {
  return (
    <div>
      <Text component="h2" size="xs" fw={600} c="dimmed" px="sm" mb={4} mt={0}>
        {title}
      </Text>
      {children}
    </div>
  );
}
