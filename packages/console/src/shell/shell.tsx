import { AppShell, Box, Burger, Container, Drawer, Group } from '@mantine/core';
import { useDisclosure } from '@mantine/hooks';
import { Link, Outlet } from 'react-router';
import { AccountSwitcher } from './account-switcher.tsx';
import { Navigation } from './navigation.tsx';
import { ProductMark } from './product-mark.tsx';
import classes from './shell.module.css';
import { CONTENT_ID, SkipLink } from './skip-link.tsx';
import { UserMenu } from './user-menu.tsx';

/** The frame of every page behind the sign-in. On narrow screens the navigation is a drawer. */
export function Shell() {
  const [isDrawerOpen, drawer] = useDisclosure(false);
  return (
    <>
      <SkipLink />
      <AppShell
        header={{ height: 56 }}
        navbar={{ width: 220, breakpoint: 'sm', collapsed: { mobile: true } }}
        padding={0}
      >
        <AppShell.Header>
          <Group h="100%" px="md" gap="sm" wrap="nowrap">
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
            <Box ml="auto" style={{ flexShrink: 0 }}>
              <UserMenu />
            </Box>
          </Group>
        </AppShell.Header>
        <AppShell.Navbar component="div" p="md" visibleFrom="sm">
          <Navigation />
        </AppShell.Navbar>
        <Drawer
          opened={isDrawerOpen}
          onClose={drawer.close}
          title="Navigation"
          size={280}
          hiddenFrom="sm"
          closeButtonProps={{ 'aria-label': 'Close the navigation' }}
        >
          <Navigation onNavigate={drawer.close} />
        </Drawer>
        <AppShell.Main id={CONTENT_ID} tabIndex={-1} className={classes.main ?? ''}>
          <Container size="xl" py="lg" px={{ base: 'md', sm: 'xl' }}>
            <Outlet />
          </Container>
        </AppShell.Main>
      </AppShell>
    </>
  );
}
