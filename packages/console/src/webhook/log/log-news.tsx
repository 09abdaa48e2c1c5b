import { Alert, Button, Group, Text, VisuallyHidden } from '@mantine/core';
import { IconActivity, IconArrowUp, IconPlugX } from '@tabler/icons-react';
import { useEffect, useRef, useState } from 'react';
import { problemWords } from '../../api/api-error.ts';
import classes from './delivery-rows.module.css';
import type { DeliveryLog } from './use-delivery-log.ts';

interface LogNewsProps {
  log: DeliveryLog;
  isFirstPage: boolean;
  onShowNewest: () => void;
}

/** Shows whether the log is live, and new deliveries that are not among the rows. */
export function LogNews({ log, isFirstPage, onShowNewest }: LogNewsProps) {
  const words = useAnnouncement(log.newCount, log.shown?.view ?? '');
  return (
    <Group gap="xs">
      <VisuallyHidden role="status">{words}</VisuallyHidden>
      {log.error !== null && log.shown !== null && !log.isBehind ? (
        <Alert color="orange" py={6} icon={<IconPlugX aria-hidden />} title="Live updates are interrupted">
          <Text size="sm">{problemWords(log.error)} This page keeps trying.</Text>
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
      {log.elsewhereCount > 0 && (
        <Text size="sm">
          {elsewhereWords(log.elsewhereCount, isFirstPage)}{' '}
          <Button size="compact-xs" variant="default" onClick={onShowNewest}>
            Show the newest
          </Button>
        </Text>
      )}
    </Group>
  );
}

/** Stays visible while the user has scrolled down. */
export function WaitingButton({ count, onShow }: { count: number; onShow: () => void }) {
  if (count === 0) return null;
  return (
    <Button
      size="compact-sm"
      className={classes.waiting ?? ''}
      leftSection={<IconArrowUp size={14} aria-hidden />}
      onClick={onShow}
    >
      Show {newWords(count)}
    </Button>
  );
}

const QUIET_MS = 10_000;

/**
 * Returns the announcement "3 new deliveries", which changes at most every ten seconds, so that a busy log does not talk
 * continuously.
 * @param count number of deliveries that arrived since the view was opened
 */
function useAnnouncement(count: number, view: string): string {
  const [words, setWords] = useState('');
  const said = useRef({ view, count, atMs: Number.NEGATIVE_INFINITY });
  useEffect(() => {
    const last = said.current;
    if (last.view !== view) {
      said.current = { ...last, view, count };
      return;
    }
    if (count <= last.count) return;
    const say = () => {
      said.current = { view, count, atMs: performance.now() };
      setWords(newWords(count - last.count));
    };
    const timer = setTimeout(say, Math.max(0, last.atMs + QUIET_MS - performance.now()));
    return () => clearTimeout(timer);
  }, [count, view]);
  return words;
}

const numberFormat = new Intl.NumberFormat();

function newWords(count: number): string {
  return count === 1 ? '1 new delivery' : `${numberFormat.format(count)} new deliveries`;
}

/** Describes new deliveries that the page does not list. */
function elsewhereWords(count: number, isFirstPage: boolean): string {
  const words = newWords(count);
  if (!isFirstPage) return `${words} since you left the first page.`;
  return count === 1 ? `${words} does not match the filters.` : `${words} do not match the filters.`;
}
