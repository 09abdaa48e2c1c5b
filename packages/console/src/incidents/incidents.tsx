import { Anchor, Group, Stack, Text, Title, VisuallyHidden } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { memo, type ReactNode } from 'react';
import { Link } from 'react-router';
import { incidentsQuery, openCountQuery } from '../api/incidents.ts';
import type { Incident } from '../api/types.ts';
import { StatusBadge, Timestamp } from '../components/state.tsx';
import { webhookPath, webhooksPath } from '../paths.ts';
import {
  causeTitle,
  createAnnouncement,
  describeImpact,
  formatMoreFailing,
  formatOpenCount,
} from '../wording/incidents.ts';
import { IncidentCard, Resend } from './incident-card.tsx';
import classes from './incidents.module.css';

const INCIDENTS_LIMIT = 10;
/** Maximum number of cards: more would hide the list, which begins with failing webhooks. */
const CARDS_MAX = 3;
const CLOSED_MAX = 3;
/** Age at which a closed incident is no longer shown. */
const RECENTLY_CLOSED_MS = 24 * 3_600_000;

/** Incidents of one webhook, or of all. */
export function incidentListQuery(accountId: number, webhookId?: string) {
  const filter = webhookId === undefined ? {} : { subscription_id: webhookId };
  return incidentsQuery(accountId, { ...filter, limit: INCIDENTS_LIMIT });
}

/** Returns the open and the recently closed incidents of one webhook, or of all. */
export function useIncidents(accountId: number, webhookId?: string) {
  const query = useQuery(incidentListQuery(accountId, webhookId));
  const rows = query.data ?? [];
  const open = rows.filter(({ status }) => status === 'open');
  // A full page may not contain all open incidents: only then is their total requested.
  const count = useQuery({ ...openCountQuery(accountId), enabled: open.length === INCIDENTS_LIMIT });
  return {
    isLoaded: query.data !== undefined,
    isPending: query.isPending,
    open,
    openCount: Math.max(open.length, count.data ?? 0),
    recentlyClosed: rows.filter(isRecentlyClosed).slice(0, CLOSED_MAX),
  };
}

interface IncidentsProps {
  accountId: number;
  denialReason: string | null;
  /** The webhook whose incidents are shown; omitted for those of all webhooks. */
  webhookId?: string;
  /** Shown instead if no incident is open. */
  emptyContent?: ReactNode;
}

/** Open incidents, and those closed in the last 24 hours, at the top of the start page or of a webhook's page. */
export const Incidents = memo(function Incidents({
  accountId,
  denialReason,
  webhookId,
  emptyContent,
}: IncidentsProps) {
  const { isLoaded, open, openCount, recentlyClosed } = useIncidents(accountId, webhookId);
  const isOnWebhookPage = webhookId !== undefined;
  return (
    <section aria-label={isOnWebhookPage ? 'Incidents of the webhook' : 'Open incidents'}>
      {/* A separate status is announced, because the cards contain times that change continuously. */}
      <VisuallyHidden role="status">{createAnnouncement(open, recentlyClosed)}</VisuallyHidden>
      <Stack gap="sm">
        {!isOnWebhookPage && open.length > 0 && (
          <Title order={2} size="h4">
            {formatOpenCount(openCount)}
          </Title>
        )}
        {open.slice(0, CARDS_MAX).map((incident) => (
          <IncidentCard
            key={incident.subscription_id}
            accountId={accountId}
            incident={incident}
            denialReason={denialReason}
            isOnWebhookPage={isOnWebhookPage}
          />
        ))}
        {open.length > CARDS_MAX && (
          <Anchor component={Link} to={`${webhooksPath(accountId)}?failing=true`} size="sm">
            {formatMoreFailing(openCount - CARDS_MAX)}
          </Anchor>
        )}
        {isLoaded && open.length === 0 && emptyContent}
        {recentlyClosed.map((incident) => (
          <ClosedIncident
            key={`${incident.subscription_id} ${incident.since}`}
            accountId={accountId}
            incident={incident}
            denialReason={denialReason}
            isOnWebhookPage={isOnWebhookPage}
          />
        ))}
      </Stack>
    </section>
  );
});

function isRecentlyClosed({ until }: Incident): boolean {
  return until !== null && Date.now() - Number(until) / 1_000 < RECENTLY_CLOSED_MS;
}

/** A line about a closed incident, with a button that resends the deliveries that are still failed. */
function ClosedIncident({
  accountId,
  incident,
  denialReason,
  isOnWebhookPage,
}: Pick<IncidentsProps, 'accountId' | 'denialReason'> & { incident: Incident; isOnWebhookPage: boolean }) {
  const { subscription_id, subscription_name, since, until } = incident;
  return (
    <Group gap="xs" className={classes.ended ?? ''}>
      <StatusBadge tone="good">Incident closed</StatusBadge>
      {!isOnWebhookPage && (
        <Anchor
          component={Link}
          to={webhookPath(accountId, subscription_id)}
          size="sm"
          fw={600}
          className={classes.breakAnywhere ?? ''}
        >
          {subscription_name}
        </Anchor>
      )}
      <Text span size="sm" className={classes.breakAnywhere ?? ''}>
        {causeTitle(incident)}. It started <Timestamp at={since} />
        {until !== null && (
          <>
            {' '}
            and ended <Timestamp at={until} />
          </>
        )}
        . {describeImpact(incident)}
      </Text>
      <Resend accountId={accountId} incident={incident} denialReason={denialReason} />
    </Group>
  );
}
