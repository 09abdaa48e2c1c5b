import {
  Anchor,
  Button,
  Code,
  Group,
  Paper,
  Skeleton,
  Stack,
  Text,
  Title,
  VisuallyHidden,
} from '@mantine/core';
import { useInfiniteQuery, useQuery } from '@tanstack/react-query';
import { Link, useParams } from 'react-router';
import { accountLogQuery, runEventsQuery, runQuery } from '../api/activity.ts';
import { ApiError } from '../api/api-error.ts';
import { useChanges } from '../api/changes.ts';
import type { AccountDelivery, Run, RunEvent } from '../api/types.ts';
import { CopyButton } from '../components/copy.tsx';
import { WriteNotice } from '../components/guarded.tsx';
import { PageHeading, Problem } from '../components/page.tsx';
import { StatusBadge, Timestamp } from '../components/state.tsx';
import { runsPath } from '../paths.ts';
import { useAccount } from '../session/session.ts';
import { NotFoundPage } from '../shell/error-pages.tsx';
import { Fact } from '../webhook/fact.tsx';
import classes from '../webhook/webhook-facts.module.css';
import {
  describeMatches,
  formatRunDuration,
  formatWebhookCount,
  runLabel,
  runTone,
  UNDELIVERED_TEXTS,
} from '../wording/runs.ts';
import { EVENT_TEXTS } from '../wording/webhooks.ts';
import { EventDeliveries } from './event-deliveries.tsx';
import { RunArtifacts } from './run-artifacts.tsx';
import { RunSteps } from './steps/run-steps.tsx';
import { UnnotifiedWebhooks } from './unnotified-webhooks.tsx';

/** Maximum page size of the API: the deliveries of 33 webhooks and three events. */
const DELIVERIES_PER_CALL = 100;

/** Page of a run: its events, and the deliveries of each. */
export function Component() {
  const account = useAccount();
  const { runId: text = '' } = useParams();
  const isNumber = /^[1-9]\d{0,15}$/.test(text);
  const runId = Number(text);
  useChanges(account.id, null);
  const run = useQuery({ ...runQuery(account.id, runId), enabled: isNumber });
  const events = useQuery({ ...runEventsQuery(account.id, runId), enabled: isNumber });
  const log = useInfiniteQuery({
    ...accountLogQuery(account.id, { run_id: runId, limit: DELIVERIES_PER_CALL }),
    enabled: isNumber,
  });
  const isNotFound = [run, events].every(({ error }) => error instanceof ApiError && error.code === 404);
  if (!isNumber || isNotFound) return <NotFoundPage what="run" />;
  const failed = [events, log].find(({ isError, data }) => isError && data === undefined);
  const deliveries = log.data?.pages.flatMap(({ data }) => data) ?? [];
  return (
    <>
      <PageHeading
        title={`Run ${runId}`}
        breadcrumb={
          <Anchor component={Link} to={runsPath(account.id)} size="sm">
            Runs
          </Anchor>
        }
        {...(events.data !== undefined && { subtitle: describeMatches(events.data) })}
      />
      <WriteNotice />
      <Stack gap="md">
        {run.data !== undefined && <RunFacts run={run.data} />}
        {run.data !== undefined && <RunSteps accountId={account.id} runId={runId} />}
        {run.data !== undefined && <RunArtifacts accountId={account.id} runId={runId} />}
        {failed !== undefined && (
          <Problem
            title="The events of the run could not be loaded"
            error={failed.error}
            onRetry={() => void Promise.all([events.refetch(), log.refetch()])}
            isRetrying={events.isFetching || log.isFetching}
          />
        )}
        {failed === undefined && (events.data === undefined || log.data === undefined) && <Loading />}
        {events.data !== undefined &&
          log.data !== undefined &&
          events.data.map((event) => (
            <RunEventSection
              key={`${event.event_type} ${event.event_id}`}
              event={event}
              deliveries={deliveries.filter(({ event_id }) => event_id === event.event_id)}
            />
          ))}
        {events.data !== undefined && events.data.length > 0 && (
          <UnnotifiedWebhooks accountId={account.id} runId={runId} />
        )}
        {events.data?.length === 0 && <Text size="sm">This run has no events yet.</Text>}
        {log.hasNextPage && (
          <Group>
            <Button
              variant="default"
              onClick={() => void log.fetchNextPage()}
              loading={log.isFetchingNextPage}
            >
              Show more deliveries
            </Button>
          </Group>
        )}
      </Stack>
    </>
  );
}

function Loading() {
  return (
    <Stack role="status">
      <VisuallyHidden>Loading the run</VisuallyHidden>
      <Skeleton height={80} />
      <Skeleton height={240} />
    </Stack>
  );
}

function RunFacts({ run }: { run: Run }) {
  return (
    <dl className={classes.facts}>
      <Fact name="Status">
        <StatusBadge tone={runTone(run)}>{runLabel(run)}</StatusBadge>
      </Fact>
      <Fact name="Started">
        {run.started_at === null ? 'not yet' : <Timestamp at={run.started_at} format="full" />}
      </Fact>
      <Fact name="Finished">
        {run.finished_at === null ? (
          'not yet'
        ) : (
          <>
            <Timestamp at={run.finished_at} format="full" />
            {run.started_at !== null && ` after ${formatRunDuration(run)}`}
          </>
        )}
      </Fact>
      <Fact name="Artifacts ingested">
        {run.artifacts_ingested_at === null ? (
          'not yet'
        ) : (
          <Timestamp at={run.artifacts_ingested_at} format="full" />
        )}
      </Fact>
      <Fact name="Job">
        {run.job_name} <Code>{run.job_id}</Code>
      </Fact>
      <Fact name="Project">{run.project_name}</Fact>
      <Fact name="Environment">{run.environment_name}</Fact>
      {run.engine_version !== null && <Fact name="Engine">{run.engine_version}</Fact>}
      {run.reason !== null && (
        <Fact name="Reason" width="half">
          {run.reason}
        </Fact>
      )}
      {run.status_message !== null && (
        <Fact name="Message" width="half">
          {run.status_message}
        </Fact>
      )}
    </dl>
  );
}

/** An event and its deliveries. */
function RunEventSection({ event, deliveries }: { event: RunEvent; deliveries: readonly AccountDelivery[] }) {
  const { label } = EVENT_TEXTS[event.event_type];
  const headingId = `${event.event_type}-${event.event_id ?? 'none'}`;
  return (
    <Paper component="section" withBorder p="md" aria-labelledby={headingId}>
      <Group justify="space-between" gap="xs" mb="xs">
        <Title order={2} size="h4" id={headingId}>
          {label}
        </Title>
        <Text size="sm" c="dimmed" component="div">
          {event.state === 'matched' && `${formatWebhookCount(event.delivery_count)}, `}
          <Timestamp at={event.occurred_at} />
        </Text>
      </Group>
      {event.state === 'matched' ? (
        <Stack gap="xs">
          <EventDeliveries deliveries={deliveries} label={label} />
          {event.event_id !== null && (
            <Group gap={6} wrap="nowrap" align="flex-start">
              <Code style={{ overflowWrap: 'anywhere' }}>{event.event_id}</Code>
              <CopyButton value={event.event_id} what={`the id of the event ${label}`} size="compact-xs" />
            </Group>
          )}
        </Stack>
      ) : (
        <Text size="sm">{UNDELIVERED_TEXTS[event.state]}</Text>
      )}
    </Paper>
  );
}
