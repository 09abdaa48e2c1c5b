import { Paper, Skeleton, Text, Title, UnstyledButton } from '@mantine/core';
import { IconChevronRight } from '@tabler/icons-react';
import { useQuery } from '@tanstack/react-query';
import { lazy, Suspense, useId, useState } from 'react';
import { isStepInProgress, type RunStep, runStepsQuery } from '../../api/run-steps.ts';
import { Problem } from '../../components/page.tsx';
import { StatusBadge } from '../../components/state.tsx';
import { formatRunDuration, runTone } from '../../wording/runs.ts';
import classes from './run-steps.module.css';

const StepLog = lazy(() => import('./step-log.tsx'));

/** The steps of a run with their logs, which are loaded when a step is opened. Nothing for a run without steps. */
export function RunSteps({ accountId, runId }: { accountId: number; runId: number }) {
  const steps = useQuery(runStepsQuery(accountId, runId));
  const headingId = useId();
  if (steps.isError && steps.data === undefined)
    return (
      <Problem
        title="The steps of the run could not be loaded"
        error={steps.error}
        onRetry={() => void steps.refetch()}
        isRetrying={steps.isFetching}
      />
    );
  if (steps.data === undefined || steps.data.length === 0) return null;
  return (
    <Paper component="section" withBorder p="md" aria-labelledby={headingId}>
      <Title order={2} size="h4" id={headingId} mb="xs">
        Steps
      </Title>
      <ol className={classes.steps}>
        {steps.data.map((step) => (
          <Step key={step.index} step={step} />
        ))}
      </ol>
    </Paper>
  );
}

function Step({ step }: { step: RunStep }) {
  const [isOpen, setOpen] = useState(false);
  const logId = useId();
  return (
    <li className={classes.step}>
      <UnstyledButton
        className={classes.toggle ?? ''}
        aria-expanded={isOpen}
        aria-controls={isOpen ? logId : undefined}
        onClick={() => setOpen(!isOpen)}
      >
        <IconChevronRight size={16} aria-hidden className={classes.chevron ?? ''} data-open={isOpen} />
        <span className={classes.name}>
          {step.index}. {step.name}
        </span>
        <StatusBadge tone={runTone(step)}>{step.status_humanized}</StatusBadge>
        <Text span c="dimmed" className={classes.duration ?? ''}>
          {isStepInProgress(step) ? 'in progress' : formatRunDuration(step)}
        </Text>
      </UnstyledButton>
      {isOpen && (
        <div id={logId} className={classes.log}>
          <Suspense fallback={<Skeleton height={120} role="status" aria-label="Loading" />}>
            <StepLog step={step} />
          </Suspense>
        </div>
      )}
    </li>
  );
}
