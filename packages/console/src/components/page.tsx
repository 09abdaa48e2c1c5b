import { Alert, Box, Button, Group, Stack, Text, Title } from '@mantine/core';
import { useMediaQuery } from '@mantine/hooks';
import { notifications } from '@mantine/notifications';
import { IconAlertTriangle } from '@tabler/icons-react';
import { type ReactNode, useDeferredValue, useEffect, useRef } from 'react';
import { useLocation } from 'react-router';
import { describeProblem } from '../api/api-error.ts';
import classes from './components.module.css';

/** Path of the latest page; null before the first page, whose focus is left to the browser. */
let focusedPathname: string | null = null;

interface PageHeadingProps {
  /** The heading, and the title of the browser's tab unless `tabTitle` is set. */
  title: string;
  tabTitle?: string;
  /** Shown above the title: a link to the parent page. */
  breadcrumb?: ReactNode;
  /** Shown below the title: one line about the page. */
  subtitle?: ReactNode;
  actions?: ReactNode;
}

/** The heading of a page. It takes the focus after a navigation, so that screen readers announce the page. */
export function PageHeading({ title, tabTitle = title, breadcrumb, subtitle, actions }: PageHeadingProps) {
  usePageTitle(tabTitle);
  const { pathname } = useLocation();
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    if (focusedPathname !== null && focusedPathname !== pathname) heading.current?.focus();
    focusedPathname = pathname;
  }, [pathname]);
  return (
    <Box component="header" mb="md">
      {breadcrumb !== undefined && (
        <Text component="div" size="sm" mb={4}>
          {breadcrumb}
        </Text>
      )}
      <Group justify="space-between" align="flex-start" gap="sm">
        <Title order={1} size="h2" ref={heading} tabIndex={-1} className={classes.title ?? ''}>
          {title}
        </Title>
        {actions !== undefined && <Group gap="xs">{actions}</Group>}
      </Group>
      {subtitle !== undefined && (
        <Text component="div" size="sm" c="dimmed" mt={4}>
          {subtitle}
        </Text>
      )}
    </Box>
  );
}

/** Sets the title of the browser's tab, which screen readers announce first: the page, then the product. */
export function usePageTitle(title: string): void {
  useEffect(() => {
    document.title = `${title} · Runhook`;
  }, [title]);
}

interface ProblemProps {
  /** The action that failed: "The webhooks could not be loaded". */
  title: string;
  error: unknown;
  onRetry?: () => void;
  isRetrying?: boolean;
}

/** An error with its reason and a retry button. Screen readers announce it. */
export function Problem({ title, error, onRetry, isRetrying = false }: ProblemProps) {
  return (
    <Alert color="red" role="alert" title={title} icon={<IconAlertTriangle aria-hidden />}>
      <Stack align="flex-start" gap="sm">
        <Text size="sm">{describeProblem(error)}</Text>
        {onRetry !== undefined && (
          <Button size="xs" variant="default" onClick={onRetry} loading={isRetrying}>
            Try again
          </Button>
        )}
      </Stack>
    </Alert>
  );
}

interface DeferredRenderProps {
  /** Placeholder until the children are rendered. */
  fallback: ReactNode;
  children: ReactNode;
}

/**
 * Renders slow content in the background. Content that a response brings is rendered in one long task, which blocks a slow
 * device; after a deferred value, React renders it in slices of some milliseconds.
 */
export function DeferredRender({ fallback, children }: DeferredRenderProps) {
  return useDeferredValue(true, false) ? children : fallback;
}

const TOAST_MS = 6_000;
const UNDO_TOAST_MS = 20_000;

/** Shows that an action succeeded, with an undo button if there is one. */
export function toastSuccess(message: string, undo?: { label: string; onClick: () => void }): void {
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
    autoClose: undo === undefined ? TOAST_MS : UNDO_TOAST_MS,
    withBorder: true,
    role: 'status',
  });
}

/** Shows that an action failed. The toast stays until the user closes it. */
export function toastProblem(title: string, message: string): void {
  notifications.show({ title, message, color: 'red', autoClose: false, withBorder: true, role: 'alert' });
}

/** Whether the viewport has the width of a phone, where the navigation is a drawer. */
export function useIsPhone(): boolean {
  return useIsNarrow(48);
}

/** Whether the viewport has at most this width, at which lists are cards instead of tables. */
export function useIsNarrow(widthEm: number): boolean {
  return useMediaQuery(`(max-width: ${widthEm}em)`, undefined, { getInitialValueInEffect: false }) ?? false;
}
