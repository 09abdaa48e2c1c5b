import classes from './message-preview.module.css';

/** The part of an event of the Events API v2 that formats use. */
export interface PagerDutyEvent {
  event_action: 'trigger' | 'acknowledge' | 'resolve';
  dedup_key?: string;
  payload?: {
    summary: string;
    source: string;
    severity: string;
    component?: string;
    group?: string;
    class?: string;
    custom_details?: Record<string, unknown>;
  };
  links?: { href: string; text?: string }[];
}

export function PagerDutyAlertPreview({ event }: { event: PagerDutyEvent }) {
  const { event_action, payload, dedup_key, links = [] } = event;
  const { source, severity, component, group } = payload ?? {};
  const facts = { Severity: severity, Source: source, Component: component, Group: group, Key: dedup_key };
  const details = Object.entries(payload?.custom_details ?? {});
  return (
    <div className={classes.message}>
      <p className={classes.header}>
        {payload?.summary ?? (event_action === 'resolve' ? 'The alert of this job is resolved' : '')}
      </p>
      <dl className={classes.facts}>
        {Object.entries(facts)
          .concat(details.map(([name, value]) => [name, formatDetail(value)]))
          .map(
            ([name, value]) =>
              value !== undefined && (
                <div key={name}>
                  <dt>{name}</dt>
                  <dd>{value}</dd>
                </div>
              ),
          )}
      </dl>
      {links.map(({ href, text = href }) => (
        <span key={href} className={classes.link}>
          {text}
        </span>
      ))}
    </div>
  );
}

function formatDetail(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
