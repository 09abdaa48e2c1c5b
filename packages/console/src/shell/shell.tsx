import { Alert, Box, Burger, Container, NavLink, Stack, Text, VisuallyHidden } from '@mantine/core';
import { useDisclosure, useNetwork } from '@mantine/hooks';
import {
  IconChartBar,
  IconExternalLink,
  IconHistory,
  IconKey,
  IconPlayerPlay,
  IconPlugX,
  IconRobot,
  IconShieldLock,
  IconWebhook,
} from '@tabler/icons-react';
import { lazy, Suspense } from 'react';
import { Link, Outlet, NavLink as RouterNavLink, useHref } from 'react-router';
import { useHasBeenTrue } from '../components/lazy-popover.tsx';
import {
  API_ACCESS_PATH,
  auditPath,
  eventsPath,
  runsPath,
  SECURITY_PATH,
  tokensPath,
  webhooksPath,
} from '../paths.ts';
import { consoleUrl } from '../served-page.ts';
import { useCurrentAccount } from '../session/session.ts';
import { isAdmin } from '../wording/audit.ts';
import { AccountSwitcher, GoTo, UserMenu } from './header.tsx';
import classes from './shell.module.css';

const LazyDrawer = lazy(() => import('./drawer.tsx'));

/** Frame of every page that requires a session. On narrow screens the navigation is a drawer. */
export function Shell() {
  const [isDrawerOpen, drawer] = useDisclosure(false);
  const hasDrawerBeenOpen = useHasBeenTrue(isDrawerOpen);
  return (
    <>
      <SkipLink />
      <header className={classes.header}>
        <Burger
          hiddenFrom="sm"
          size="sm"
          opened={isDrawerOpen}
          onClick={drawer.open}
          aria-label="Open the navigation"
        />
        <Link to="/" className={classes.home} aria-label="Runhook, your webhooks">
          <ProductMark />
        </Link>
        <AccountSwitcher />
        <GoTo />
        <Box ml="auto" style={{ flexShrink: 0 }}>
          <UserMenu />
        </Box>
      </header>
      <div className={classes.navigation}>
        <Navigation />
      </div>
      {hasDrawerBeenOpen && (
        <Suspense>
          <LazyDrawer isOpen={isDrawerOpen} onClose={drawer.close}>
            <Navigation onNavigate={drawer.close} />
          </LazyDrawer>
        </Suspense>
      )}
      <main id={CONTENT_ID} tabIndex={-1} className={classes.main}>
        <Container size="xl" py="lg" px={{ base: 'md', sm: 'xl' }}>
          <OfflineNotice />
          <Outlet />
        </Container>
      </main>
    </>
  );
}

/** The live region exists before its text, so that screen readers announce the text. */
function OfflineNotice() {
  const { online } = useNetwork();
  return (
    <div role="status">
      {!online && (
        <Alert color="orange" mb="md" icon={<IconPlugX aria-hidden />} title="You are offline">
          <Text size="sm">The data shown may be outdated. It is refreshed when the network is back.</Text>
        </Alert>
      )}
    </div>
  );
}

const CONTENT_ID = 'content';

/** First tab stop, which skips the header and the navigation. */
function SkipLink() {
  // The link contains the complete path: the browser would resolve a bare fragment against `<base>`.
  const href = useHref({ hash: CONTENT_ID });
  return (
    <a
      href={href}
      className={classes.skip}
      onClick={(event) => {
        event.preventDefault();
        document.getElementById(CONTENT_ID)?.focus();
      }}
    >
      Skip to the content
    </a>
  );
}

/** Links to the main pages. @param onNavigate closes the drawer on narrow screens */
function Navigation({ onNavigate }: { onNavigate?: () => void }) {
  const account = useCurrentAccount();
  return (
    <Stack component="nav" gap="lg" aria-label="Main">
      {account !== null && (
        <Section title="Activity">
          <NavigationLink
            to={runsPath(account.id)}
            label="Runs"
            Icon={IconPlayerPlay}
            onNavigate={onNavigate}
          />
          <NavigationLink
            to={eventsPath(account.id)}
            label="Events"
            Icon={IconChartBar}
            onNavigate={onNavigate}
          />
        </Section>
      )}
      {account !== null && (
        <Section title="Account Settings">
          <NavigationLink
            to={webhooksPath(account.id)}
            label="Webhooks"
            Icon={IconWebhook}
            onNavigate={onNavigate}
          />
          {isAdmin(account) && (
            <>
              <NavigationLink
                to={tokensPath(account.id)}
                label="Service tokens"
                Icon={IconRobot}
                onNavigate={onNavigate}
              />
              <NavigationLink
                to={auditPath(account.id)}
                label="Audit log"
                Icon={IconHistory}
                onNavigate={onNavigate}
              />
            </>
          )}
        </Section>
      )}
      <Section title="Profile">
        <NavigationLink to={API_ACCESS_PATH} label="API Access" Icon={IconKey} onNavigate={onNavigate} />
        <NavigationLink to={SECURITY_PATH} label="Security" Icon={IconShieldLock} onNavigate={onNavigate} />
      </Section>
      <Section title="Help">
        <NavLink
          href={consoleUrl('docs')}
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

interface NavigationLinkProps {
  to: string;
  label: string;
  Icon: typeof IconKey;
  onNavigate: (() => void) | undefined;
}

function NavigationLink({ to, label, Icon, onNavigate }: NavigationLinkProps) {
  return (
    <NavLink
      component={RouterNavLink}
      to={to}
      label={label}
      leftSection={<Icon size={18} aria-hidden />}
      className={classes.link ?? ''}
      {...(onNavigate && { onClick: onNavigate })}
    />
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

/** Name and logo of the product. */
export function ProductMark() {
  return (
    <span className={classes.mark}>
      <svg viewBox="0 0 32 32" width="26" height="26" aria-hidden="true">
        <rect width="32" height="32" rx="7" fill="#1971c2" />
        <path
          d="M20 7v11a5 5 0 1 1-10 0v-2"
          fill="none"
          stroke="#fff"
          strokeWidth="3"
          strokeLinecap="round"
        />
        <path
          d="M6.5 18.5 10 15l3.5 3.5"
          fill="none"
          stroke="#fff"
          strokeWidth="3"
          strokeLinecap="round"
          strokeLinejoin="round"
        />
      </svg>
      Runhook
    </span>
  );
}
