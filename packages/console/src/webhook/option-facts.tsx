import { Code } from '@mantine/core';
import { formatByName } from '@runhook/contract/formats';
import { useQuery } from '@tanstack/react-query';
import { type ResourceKind, resourcesByIdQuery } from '../api/filters.ts';
import type { Subscription } from '../api/types.ts';
import { Fact } from './fact.tsx';

const RUN_STATUS_LABELS: Readonly<Record<string, string>> = {
  '3': 'Running',
  '10': 'Succeeded',
  '20': 'Errored',
};

interface OptionFactsProps {
  accountId: number;
  webhook: Subscription;
}

/** The options of a webhook that are set, as items of a `<dl>`. */
export default function OptionFacts({ accountId, webhook }: OptionFactsProps) {
  const { format, format_options, filters, ordered, rate_limit, deactivate_on_410, labels } = webhook;
  return (
    <>
      {format !== undefined && (
        <Fact name="Format">
          {formatByName(format)?.label ?? format}
          {Object.keys(format_options ?? {}).map((name) => (
            <span key={name}>
              , <Code>{name}</Code> ***
            </span>
          ))}
        </Fact>
      )}
      {filters?.run_statuses !== undefined && (
        <Fact name="Run status">
          {filters.run_statuses.map((code) => RUN_STATUS_LABELS[code] ?? code).join(' or ')}
        </Fact>
      )}
      {filters?.environment_ids !== undefined && (
        <Fact name="Environments">
          <Names accountId={accountId} kind="environments" ids={filters.environment_ids} />
        </Fact>
      )}
      {filters?.project_ids !== undefined && (
        <Fact name="Projects">
          <Names accountId={accountId} kind="projects" ids={filters.project_ids} />
        </Fact>
      )}
      {ordered === true && <Fact name="Order">The events of a run one after another</Fact>}
      {rate_limit !== undefined && <Fact name="Rate limit">{rate_limit} per second</Fact>}
      {deactivate_on_410 === true && <Fact name="410 Gone">Switches the webhook off</Fact>}
      {labels !== undefined && (
        <Fact name="Labels" width="half">
          {Object.entries(labels)
            .map(([name, value]) => (value === '' ? name : `${name}: ${value}`))
            .join(', ')}
        </Fact>
      )}
    </>
  );
}

function Names({ accountId, kind, ids }: { accountId: number; kind: ResourceKind; ids: readonly string[] }) {
  const found = useQuery(resourcesByIdQuery(accountId, kind, ids)).data ?? [];
  const names = new Map(found.map(({ id, name }) => [String(id), name]));
  return ids.map((id) => names.get(id) ?? id).join(', ');
}
