/** Returns the full seconds between two times; 0 if they are in the reverse order. */
export function secondsBetween(fromMs: number, toMs: number): number {
  return Math.max(0, Math.floor((toMs - fromMs) / 1_000));
}

/** Returns a duration as `HH:MM:SS`; more than 99 hours have more digits. */
export function durationText(seconds: number): string {
  const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  return parts.map((part) => String(part).padStart(2, '0')).join(':');
}

const UNITS = [
  { name: 'day', seconds: 86_400 },
  { name: 'hour', seconds: 3_600 },
  { name: 'minute', seconds: 60 },
  { name: 'second', seconds: 1 },
];

/** Returns a duration in words, in its two largest units: `1 minute, 34 seconds`. */
export function humanDuration(seconds: number): string {
  const parts: string[] = [];
  let rest = seconds;
  for (const unit of UNITS) {
    const count = Math.floor(rest / unit.seconds);
    rest -= count * unit.seconds;
    if (count > 0) parts.push(`${count} ${unit.name}${count === 1 ? '' : 's'}`);
  }
  return parts.slice(0, 2).join(', ') || '0 seconds';
}
