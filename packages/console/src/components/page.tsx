import { Alert, Box, Button, Group, Stack, Text, Title } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { notifications } from '@mantine/notifications';
import { IconAlertTriangle } from '@tabler/icons-react';
import { type ReactNode, useDeferredValue, useEffect, useRef } from 'react';
import { useLocation } from 'react-router';
import { problemWords } from '../api/api-error.ts';
import classes from './components.module.css';

/** The page whose heading had the focus last; null before the first, which leaves the focus to the browser. */
let focusedPathname: string | null = null;

interface PageHeadingProps {
  /** Also the title of the browser's tab, unless `tabTitle` is given. */
  title: string;
  tabTitle?: string;
  /** Above the title: where the page belongs, a link back. */
  above?: ReactNode;
  /** Below the title: what the page is, in a line. */
  below?: ReactNode;
  /** At the end of the line. */
  actions?: ReactNode;
}

/** The heading of a page. It takes the focus when a link led here, so that what was opened is read out. */
export function PageHeading({ title, tabTitle = title, above, below, actions }: PageHeadingProps) {
  usePageTitle(tabTitle);
  const { pathname } = useLocation();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (focusedPathname !== null && focusedPathname !== pathname) heading.current?.focus();
    focusedPathname = pathname;
  }, [pathname]);
  return (
    <Box component="header" mb="md">
      {above !== undefined && (
        <Text component="div" size="sm" mb={4}>
          {above}
        </Text>
      )}
      <Group justify="space-between" align="flex-start" gap="sm">
        <Title order={1} size="h2" ref={heading} tabIndex={-1} className={classes.title ?? ''}>
          {title}
        </Title>
        {actions !== undefined && <Group gap="xs">{actions}</Group>}
      </Group>
      {below !== undefined && (
        <Text component="div" size="sm" c="dimmed" mt={4}>
          {below}
        </Text>
      )}
    </Box>
  );
}

/** The browser's tab and what a screen reader says first: the page, then the product. */
export function usePageTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Runhook`;
  }, [title]);
}

interface ProblemProps {
  /** What could not be done: "The webhooks could not be loaded". */
  title: string;
  error: unknown;
  onRetry?: () => void;
  isRetrying?: boolean;
}

/** What failed, why, and another try. Read out when it appears. */
export function Problem({ title, error, onRetry, isRetrying = false }: ProblemProps) {
  return (
    <Alert color="red" role="alert" title={title} icon={<IconAlertTriangle aria-hidden />}>
      <Stack align="flex-start" gap="sm">
        <Text size="sm">{problemWords(error)}</Text>
        {onRetry !== undefined && (
          <Button size="xs" variant="default" onClick={onRetry} loading={isRetrying}>
            Try again
          </Button>
        )}
      </Stack>
    </Alert>
  );
}

interface InPiecesProps {
  /** What stands there until the rest is drawn. */
  meanwhile: ReactNode;
  children: ReactNode;
}

/**
 * Around what takes long to draw. What an answer brings is drawn at once and as a whole, which stops a slow device; what
 * follows a deferred value is drawn in pieces of some milliseconds.
 */
export function InPieces({ meanwhile, children }: InPiecesProps) {
  return useDeferredValue(true, false) ? children : meanwhile;
}

const SHOWN_MS = 6_000;
const UNDO_SHOWN_MS = 20_000;

/** Says that something was done, with a way back if there is one. */
export function toastDone(message: string, undo?: { label: string; onClick: () => void }): void {
  const id = notifications.show({
    message:
      undo === undefined ? (
        message
      ) : (
        <Stack gap={6} align="flex-start">
          {message}
          <Button
            size="compact-xs"
            variant="default"
            onClick={() => {
              notifications.hide(id);
              undo.onClick();
            }}
          >
            {undo.label}
          </Button>
        </Stack>
      ),
    color: 'green',
    autoClose: undo === undefined ? SHOWN_MS : UNDO_SHOWN_MS,
    withBorder: true,
    role: 'status',
  });
}

/** Says that something was not done; stays until it is closed. */
export function toastProblem(title: string, message: string): void {
  notifications.show({ title, message, color: 'red', autoClose: false, withBorder: true, role: 'alert' });
}

/** Whether the page has the width of a phone: the navigation is a drawer then. */
export function useIsPhone(): boolean {
  return useIsNarrow(48);
}

/** Whether the page is so wide at most, beside its navigation: lists are cards where a table has no room. */
export function useIsNarrow(widthEm: number): boolean {
  return useMediaQuery(`(max-width: ${widthEm}em)`, undefined, { getInitialValueInEffect: false }) ?? false;
}
