import { Box, Group, Text, Title } from '@mantine/core';
import { type ReactNode, useEffect, useRef } from 'react';
import { useLocation } from 'react-router';
import { usePageTitle } from '../shell/use-page-title.ts';
import classes from './page-heading.module.css';

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
