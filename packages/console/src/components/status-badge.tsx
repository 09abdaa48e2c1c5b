import { IconCircleCheck, IconCircleDashed, IconCircleX, IconClockHour4 } from '@tabler/icons-react';
import type { ReactNode } from 'react';
import type { Tone } from '../words/http-status.ts';
import classes from './status-badge.module.css';

const ICONS = {
  good: IconCircleCheck,
  bad: IconCircleX,
  waiting: IconClockHour4,
  neutral: IconCircleDashed,
};

/** A state in a word, with an icon of its own and a colour: the colour never says it alone. */
export function StatusBadge({ tone, children }: { tone: Tone; children: ReactNode }) {
  const Icon = ICONS[tone];
  return (
    <span className={classes.badge} data-tone={tone}>
      <Icon size={15} aria-hidden className={classes.icon} />
      <span>{children}</span>
    </span>
  );
}
