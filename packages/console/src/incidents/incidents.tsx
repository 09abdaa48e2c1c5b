import { Anchor, Group, Stack, Text, Title, VisuallyHidden } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { memo, type ReactNode } from 'react';
import { Link } from 'react-router';
import { incidentsQuery, openCountQuery } from '../api/incidents.ts';
import type { Incident } from '../api/types.ts';
import { Moment, StatusBadge } from '../components/state.tsx';
import { webhookPath, webhooksPath } from '../paths.ts';
import { announcement, causeTitle, harmWords, moreFailingWords, openCountWords } from '../words/incidents.ts';
import { IncidentCard, Resend } from './incident-card.tsx';
import classes from './incidents.module.css';

const ASKED_FOR = 10;
/** Maximum number of cards: more would hide the list, which begins with failing webhooks. */
const CARDS = 3;
const CLOSED_SHOWN = 3;
/** Age at which a closed incident is no longer shown. */
const NEWS_MS = 24 * 3_600_000;

/** Incidents of one webhook, or of all. */
export function incidentsOf(accountId: number, webhookId?: string) {
  const ofOne = webhookId === undefined ? {} : { subscription_id: webhookId };
  return incidentsQuery(accountId, { ...ofOne, limit: ASKED_FOR });
}

/** Returns the open and the recently closed incidents of one webhook, or of all. */
export function useIncidents(accountId: number, webhookId?: string) {
  const query = useQuery(incidentsOf(accountId, webhookId));
  const rows = query.data ?? [];
  const open = rows.filter(({ status }) => status === 'open');
  // A full page may not contain all of them: only then is their total requested.
  const count = useQuery({ ...openCountQuery(accountId), enabled: open.length === ASKED_FOR });
  return {
    isKnown: query.data !== undefined,
    isPending: query.isPending,
    open,
    openCount: Math.max(open.length, count.data ?? 0),
    news: rows.filter(isNews).slice(0, CLOSED_SHOWN),
  };
}

interface IncidentsProps {
  accountId: number;
  refusal: string | null;
  /** The webhook whose incidents are shown; omitted for those of all webhooks. */
  webhookId?: string;
  /** Shown instead if no incident is open. */
  whenNone?: ReactNode;
}

/** Open incidents, and those that were closed since yesterday, at the top of the start page. */
export const Incidents = memo(function Incidents({
  accountId,
  refusal,
  webhookId,
  whenNone,
}: IncidentsProps) {
  const { isKnown, open, openCount, news } = useIncidents(accountId, webhookId);
  const isOfPage = webhookId !== undefined;
  return (
    <section aria-label={isOfPage ? 'Incidents of the webhook' : 'Open incidents'}>
      {/* A separate status is announced, because the cards contain times that change continuously. */}
      <VisuallyHidden role="status">{announcement(open, news)}</VisuallyHidden>
      <Stack gap="sm">
        {!isOfPage && open.length > 0 && (
          <Title order={2} size="h4">
            {openCountWords(openCount)}
          </Title>
        )}
        {open.slice(0, CARDS).map((incident) => (
          <IncidentCard
            key={incident.subscription_id}
            accountId={accountId}
            incident={incident}
            refusal={refusal}
            isOfPage={isOfPage}
          />
        ))}
        {open.length > CARDS && (
          <Anchor component={Link} to={`${webhooksPath(accountId)}?failing=true`} size="sm">
            {moreFailingWords(openCount - CARDS)}
          </Anchor>
        )}
        {isKnown && open.length === 0 && whenNone}
        {news.map((incident) => (
          <Ended
            key={`${incident.subscription_id} ${incident.since}`}
            accountId={accountId}
            incident={incident}
            refusal={refusal}
            isOfPage={isOfPage}
          />
        ))}
      </Stack>
    </section>
  );
});

function isNews({ until }: Incident): boolean {
  return until !== null && Date.now() - Number(until) / 1_000 < NEWS_MS;
}

/** A line about a closed incident, with a button that resends the deliveries that are still failed. */
function Ended({
  accountId,
  incident,
  refusal,
  isOfPage,
}: Pick<IncidentsProps, 'accountId' | 'refusal'> & { incident: Incident; isOfPage: boolean }) {
  const { subscription_id, subscription_name, since, until } = incident;
  return (
    <Group gap="xs" className={classes.ended ?? ''}>
      <StatusBadge tone="good">Incident closed</StatusBadge>
      {!isOfPage && (
        <Anchor
          component={Link}
          to={webhookPath(accountId, subscription_id)}
          size="sm"
          fw={600}
          className={classes.anywhere ?? ''}
        >
          {subscription_name}
        </Anchor>
      )}
      <Text span size="sm" className={classes.anywhere ?? ''}>
        {causeTitle(incident)}. It started <Moment at={since} />
        {until !== null && (
          <>
            {' '}
            and ended <Moment at={until} />
          </>
        )}
        . {harmWords(incident)}
      </Text>
      <Resend accountId={accountId} incident={incident} refusal={refusal} />
    </Group>
  );
}
