import { Anchor, Button, Group, Skeleton, Stack, Text, TextInput } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useMemo, useState } from 'react';
import type { RunStep, RunStepLog } from '../../api/run-steps.ts';
import { stepLogAddress, stepLogQuery } from '../../api/run-steps.ts';
import { Problem } from '../../components/page.tsx';
import { type AnsiLine, lineText, parseAnsi } from './ansi.ts';
import classes from './step-log.module.css';

/** Number of lines that are rendered at first: the browser needs a second for some 20,000. */
const LINES_SHOWN = 2_000;

/** The log of a step, loaded when its step is opened: with colours, a search and a download. */
export default function StepLog({ step }: { step: RunStep }) {
  const [log, setLog] = useState<RunStepLog>(step.logs_bytes > 0 ? 'logs' : 'debug_logs');
  if (step.logs_bytes === 0 && step.debug_logs_bytes === 0)
    return <Text size="sm">This step has no log.</Text>;
  const hasBoth = step.logs_bytes > 0 && step.debug_logs_bytes > 0;
  return (
    <Stack gap="xs">
      {hasBoth && (
        <Group gap="xs" role="group" aria-label={`Logs of step ${step.index}`}>
          {(['logs', 'debug_logs'] as const).map((name) => (
            <Button
              key={name}
              size="compact-sm"
              variant={log === name ? 'light' : 'default'}
              aria-pressed={log === name}
              onClick={() => setLog(name)}
            >
              {name === 'logs' ? 'Log' : 'Debug log'}
            </Button>
          ))}
        </Group>
      )}
      <LogText key={log} step={step} log={log} />
    </Stack>
  );
}

function LogText({ step, log }: { step: RunStep; log: RunStepLog }) {
  const text = useQuery(stepLogQuery(step, log));
  const [search, setSearch] = useState('');
  const lines = useMemo(() => numberLines(text.data ?? ''), [text.data]);
  const found = useMemo(() => findLines(lines, search), [lines, search]);
  const what = `${log === 'logs' ? 'log' : 'debug log'} of step ${step.index}`;
  if (text.isError && text.data === undefined)
    return (
      <Problem
        title="The log could not be loaded"
        error={text.error}
        onRetry={() => void text.refetch()}
        isRetrying={text.isFetching}
      />
    );
  if (text.data === undefined)
    return <Skeleton height={120} role="status" aria-label={`Loading the ${what}`} />;
  return (
    <Stack gap="xs">
      <Group gap="sm" align="flex-end" justify="space-between">
        <TextInput
          type="search"
          size="xs"
          label={`Search the ${what}`}
          value={search}
          onChange={(event) => setSearch(event.currentTarget.value)}
        />
        <Anchor href={stepLogAddress(step, log)} download size="sm">
          Download the {what}
        </Anchor>
      </Group>
      <Text size="xs" c="dimmed" role="status">
        {search === ''
          ? `${lines.length.toLocaleString()} lines`
          : `${found.length.toLocaleString()} of ${lines.length.toLocaleString()} lines have this text`}
      </Text>
      <Lines lines={found} label={`The ${what}`} />
    </Stack>
  );
}

interface NumberedLine {
  number: number;
  line: AnsiLine;
}

function numberLines(text: string): NumberedLine[] {
  return parseAnsi(text).map((line, index) => ({ number: index + 1, line }));
}

function findLines(lines: readonly NumberedLine[], search: string): readonly NumberedLine[] {
  const wanted = search.toLowerCase();
  return wanted === '' ? lines : lines.filter(({ line }) => lineText(line).toLowerCase().includes(wanted));
}

/** Shows the last lines: the cause of a failure is near the end. */
function Lines({ lines, label }: { lines: readonly NumberedLine[]; label: string }) {
  const [count, setCount] = useState(LINES_SHOWN);
  const hidden = Math.max(0, lines.length - count);
  return (
    <>
      {hidden > 0 && (
        <Group>
          <Button variant="default" size="compact-sm" onClick={() => setCount(count + LINES_SHOWN)}>
            Show earlier lines ({hidden.toLocaleString()})
          </Button>
        </Group>
      )}
      <section
        className={classes.log}
        // biome-ignore lint/a11y/noNoninteractiveTabindex: a scrolling element must be scrollable by keyboard
        tabIndex={0}
        aria-label={label}
      >
        {lines.slice(hidden).map(({ number, line }) => (
          <div key={number} className={classes.line}>
            <span className={classes.number} aria-hidden>
              {number}
            </span>
            <span className={classes.text}>
              {line.map(({ text, color, isBold }, index) => (
                <span
                  // biome-ignore lint/suspicious/noArrayIndexKey: the parts of a line never change their order
                  key={index}
                  className={[color === null ? '' : classes[color], isBold ? classes.bold : '']
                    .join(' ')
                    .trim()}
                >
                  {text}
                </span>
              ))}
            </span>
          </div>
        ))}
      </section>
    </>
  );
}
