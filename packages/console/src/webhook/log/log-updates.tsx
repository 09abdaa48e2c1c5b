import { Alert, Button, Group, Text, VisuallyHidden } from '@mantine/core';
import { IconActivity, IconArrowUp, IconPlugX } from '@tabler/icons-react';
import { useEffect, useRef, useState } from 'react';
import { describeProblem } from '../../api/api-error.ts';
import classes from './delivery-rows.module.css';
import type { DeliveryLog } from './use-delivery-log.ts';

interface LogUpdatesProps {
  log: DeliveryLog;
  isFirstPage: boolean;
  onShowNewest: () => void;
}

/** Shows whether the log is live, and the number of new deliveries that are not among the rows. */
export function LogUpdates({ log, isFirstPage, onShowNewest }: LogUpdatesProps) {
  const announcement = useAnnouncement(log.newCount, log.shown?.view ?? '');
  return (
    <Group gap="xs">
      <VisuallyHidden role="status">{announcement}</VisuallyHidden>
      {log.error !== null && log.shown !== null && !log.isStale ? (
        <Alert color="orange" py={6} icon={<IconPlugX aria-hidden />} title="Live updates are interrupted">
          <Text size="sm">{describeProblem(log.error)} This page keeps trying.</Text>
        </Alert>
      ) : (
        isFirstPage &&
        !log.isOffline &&
        log.error === null &&
        log.shown !== null && (
          <Text
            size="xs"
            c="dimmed"
            component="span"
            style={{ display: 'inline-flex', gap: 4, alignItems: 'center' }}
          >
            <IconActivity size={14} aria-hidden /> Live: new deliveries appear automatically
          </Text>
        )
      )}
      {log.hiddenCount > 0 && (
        <Text size="sm">
          {describeHidden(log.hiddenCount, isFirstPage)}{' '}
          <Button size="compact-xs" variant="default" onClick={onShowNewest}>
            Show the newest
          </Button>
        </Text>
      )}
    </Group>
  );
}

/** Button that shows the waiting deliveries. It stays visible while the user scrolls. */
export function WaitingButton({ count, onShow }: { count: number; onShow: () => void }) {
  if (count === 0) return null;
  return (
    <Button
      size="compact-sm"
      className={classes.showWaiting ?? ''}
      leftSection={<IconArrowUp size={14} aria-hidden />}
      onClick={onShow}
    >
      Show {formatNewCount(count)}
    </Button>
  );
}

const ANNOUNCEMENT_INTERVAL_MS = 10_000;

/**
 * Returns the announcement "3 new deliveries", which changes at most every ten seconds, so that a busy log does not talk
 * continuously.
 * @param count number of deliveries that arrived since the page of the log was opened
 */
function useAnnouncement(count: number, view: string): string {
  const [announcement, setAnnouncement] = useState('');
  const announced = useRef({ view, count, atMs: Number.NEGATIVE_INFINITY });
  useEffect(() => {
    const last = announced.current;
    if (last.view !== view) {
      announced.current = { ...last, view, count };
      return;
    }
    if (count <= last.count) return;
    const announce = () => {
      announced.current = { view, count, atMs: performance.now() };
      setAnnouncement(formatNewCount(count - last.count));
    };
    const timer = setTimeout(announce, Math.max(0, last.atMs + ANNOUNCEMENT_INTERVAL_MS - performance.now()));
    return () => clearTimeout(timer);
  }, [count, view]);
  return announcement;
}

const numberFormat = new Intl.NumberFormat();

function formatNewCount(count: number): string {
  return count === 1 ? '1 new delivery' : `${numberFormat.format(count)} new deliveries`;
}

/** Describes new deliveries that the page does not list. */
function describeHidden(count: number, isFirstPage: boolean): string {
  const newCount = formatNewCount(count);
  if (!isFirstPage) return `${newCount} since you left the first page.`;
  return count === 1 ? `${newCount} does not match the filters.` : `${newCount} do not match the filters.`;
}
