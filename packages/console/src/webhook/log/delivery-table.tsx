import { Table } from '@mantine/core';
import type { Delivery } from '../../api/types.ts';
import { Moment, StatusBadge } from '../../components/state.tsx';
import {
  deliveryTone,
  deliveryWords,
  durationOf,
  jobWords,
  lastAnswerWords,
} from '../../words/deliveries.ts';
import { DeliveryLink } from './delivery-link.tsx';
import classes from './delivery-rows.module.css';

interface DeliveryRowsProps {
  rows: readonly Delivery[];
  /** Ids of those that came while the page was open. */
  arrived: ReadonlySet<string>;
}

const HEADINGS = ['Status', 'Event', 'Job', 'Run', 'When', 'Last answer', 'Took', 'Attempts'];
const NUMBERS = new Set(['Took', 'Attempts']);

/** The log on a screen that is wide enough. */
export function DeliveryTable({ rows, arrived }: DeliveryRowsProps) {
  return (
    <Table.ScrollContainer minWidth={760} type="native">
      <Table
        className={classes.table ?? ''}
        verticalSpacing={5}
        horizontalSpacing="xs"
        aria-label="Deliveries, newest first"
      >
        <Table.Thead>
          <Table.Tr>
            {HEADINGS.map((heading) => (
              <Table.Th key={heading} className={(NUMBERS.has(heading) && classes.number) || ''}>
                {heading}
              </Table.Th>
            ))}
          </Table.Tr>
        </Table.Thead>
        <Table.Tbody>
          {rows.map((delivery) => (
            <DeliveryRow key={delivery.id} delivery={delivery} isArrived={arrived.has(delivery.id)} />
          ))}
        </Table.Tbody>
      </Table>
    </Table.ScrollContainer>
  );
}

function DeliveryRow({ delivery, isArrived }: { delivery: Delivery; isArrived: boolean }) {
  return (
    <Table.Tr className={classes.row ?? ''} data-arrived={isArrived}>
      <Table.Td>
        <StatusBadge tone={deliveryTone(delivery)}>{deliveryWords(delivery)}</StatusBadge>
      </Table.Td>
      <Table.Td>
        <DeliveryLink delivery={delivery} />
      </Table.Td>
      <Table.Td>
        <div className={classes.job} title={delivery.job_name}>
          {jobWords(delivery)}
        </div>
      </Table.Td>
      <Table.Td>{delivery.run_id}</Table.Td>
      <Table.Td>
        <Moment at={delivery.created_at} />
      </Table.Td>
      <Table.Td>{lastAnswerWords(delivery)}</Table.Td>
      <Table.Td className={classes.number ?? ''}>{durationOf(delivery)}</Table.Td>
      <Table.Td className={classes.number ?? ''}>{delivery.attempt_count}</Table.Td>
    </Table.Tr>
  );
}
