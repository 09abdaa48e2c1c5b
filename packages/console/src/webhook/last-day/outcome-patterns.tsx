import type { DeliveryStatus } from '../../api/types.ts';
import classes from './hour-chart.module.css';

const SIZE = 6;

export function patternId(id: string, outcome: DeliveryStatus): string {
  return `${id}-pattern-${outcome}`;
}

/** What tells outcomes apart without their colours: stripes for failed, dots for pending, lines for cancelled. */
export function OutcomePatterns({ id }: { id: string }) {
  const pattern = { width: SIZE, height: SIZE, patternUnits: 'userSpaceOnUse' } as const;
  const ground = <rect width={SIZE} height={SIZE} className={classes.patternGround} />;
  return (
    <defs>
      <pattern {...pattern} id={patternId(id, 'failed')} patternTransform="rotate(45)">
        {ground}
        <rect width={SIZE / 2} height={SIZE} className={classes.failedFill} />
      </pattern>
      <pattern {...pattern} id={patternId(id, 'pending')}>
        {ground}
        <circle cx={SIZE / 2} cy={SIZE / 2} r={1.6} className={classes.pendingFill} />
      </pattern>
      <pattern {...pattern} id={patternId(id, 'cancelled')}>
        {ground}
        <line x1={0} x2={SIZE} y1={SIZE / 2} y2={SIZE / 2} strokeWidth={1.5} className={classes.cancelled} />
      </pattern>
    </defs>
  );
}
