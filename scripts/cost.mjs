// npm run cost: what Runhook costs a month at given rates, from what docs/performance.md measured and prices that you give.
//   --rates 100,1000   deliveries a second       --days 30   LOG_RETENTION_DAYS, for each rate or for all
//   --vcpu, --disk, --archive, --internet, --zones           prices; their defaults are assumptions, see PRICES
//   --write-docs       puts the table into docs/scaling.md, with the defaults
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { root } from './workspace.mjs';

/** US dollars: round figures of the size that large clouds list on demand, not anybody's quote. */
const PRICES = {
  vcpu: [30, 'a vCPU with 4 GB of memory, for a month'],
  disk: [0.1, 'a GB of SSD, for a month'],
  archive: [0.023, 'a GB of object storage, for a month'],
  internet: [0.09, 'a GB to the internet'],
  zones: [0.02, 'a GB between two zones'],
};
/** Half of what is paid for idles, for bursts, retries, upgrades and the loss of a zone. */
const UTILIZATION = 0.5;
/** Of a request: 590 bytes of body and 389 of head (a sample, as it is sent), and what TLS, TCP and IP add. */
const REQUEST_BYTES = 979 + 220;
const WAL_DAYS = 7;
const SECONDS_A_MONTH = 2_628_000;
/** What k8s/base asks for at least: two pods of each service. A standby of PostgreSQL and of Redis doubles theirs. */
const PARTS = [
  { name: 'management', least: 0.5, copies: 1 },
  { name: 'dispatcher', least: 2, copies: 1 },
  { name: 'Redis', least: 0.5, copies: 2 },
  { name: 'PostgreSQL', least: 1, copies: 2 },
];

const DEFAULTS = { rates: '100,1000,10000,10000', days: '30,30,30,7' };
const { values } = parseArgs({
  options: {
    ...Object.fromEntries(
      ['rates', 'days', ...Object.keys(PRICES)].map((name) => [name, { type: 'string' }]),
    ),
    'write-docs': { type: 'boolean' },
  },
});
const given = values['write-docs'] ? {} : values;
const price = Object.fromEntries(
  Object.entries(PRICES).map(([name, [usual]]) => [name, Number(given[name] ?? usual)]),
);

/** A row of what `npm run bench -- rest` measured, by the names of its columns. */
function measured(name) {
  const page = readFileSync(join(root, 'docs', 'performance.md'), 'utf8');
  const [, table = ''] = /<!-- figures: rest -->\n([\s\S]*?)<!-- end -->/.exec(page) ?? [];
  const [columns, , ...rows] = table
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) =>
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  const row = rows.find(([first]) => first === name);
  if (row === undefined) throw new Error(`docs/performance.md has no row "${name}" of rest`);
  return (column) => Number(row[columns.indexOf(column)]);
}

const counted = measured('counted, 100/s');
/** The measured rate that is nearest below: an event costs less the more there are at once. */
const cpuAt = (rate) => measured(rate >= 1_993 ? 'as fast as it goes' : rate >= 1_000 ? '1000/s' : '100/s');

function costOf(rate, days) {
  const cpu = cpuAt(rate);
  const cores = PARTS.map(({ name, least, copies }) => {
    const needed = (rate * cpu(`${name}, µs`)) / 1e6 / UTILIZATION;
    return copies * Math.ceil(2 * Math.max(least, needed)) * 0.5;
  });
  const compute = cores.reduce((sum, part) => sum + part, 0) * price.vcpu;
  const gigabytesADay = (bytes) => (rate * 86_400 * bytes) / 1e9;
  const logGb = gigabytesADay(counted('disk each, bytes')) * days;
  const walGb = gigabytesADay(counted('WAL each, bytes'));
  // The disk of the standby too, a quarter of it free; the log of the last week is kept elsewhere.
  const storage = (logGb / 0.75) * 2 * price.disk + walGb * WAL_DAYS * price.archive;
  const sentGb = (rate * SECONDS_A_MONTH * REQUEST_BYTES) / 1e9;
  const traffic = sentGb * price.internet + walGb * 30.4 * price.zones;
  return { rate, days, cores, compute, logGb, storage, sentGb, traffic, total: compute + storage + traffic };
}

const dollars = (amount) => `$${Math.round(amount).toLocaleString('en')}`;
const size = (gb) => (gb >= 1_000 ? `${(gb / 1_000).toFixed(1)} TB` : `${Math.round(gb)} GB`);

function table() {
  const rates = (given.rates ?? DEFAULTS.rates).split(',').map(Number);
  const days = (given.days ?? (given.rates ? '30' : DEFAULTS.days)).split(',').map(Number);
  const lines = rates.map((rate, index) => {
    const { cores, ...cost } = costOf(rate, days[index] ?? days[0]);
    const perMillion = cost.total / ((rate * SECONDS_A_MONTH) / 1e6);
    return `| ${[
      `${rate.toLocaleString('en')}, ${cost.days} days`,
      ...cores.map(String),
      dollars(cost.compute),
      `${size(cost.logGb)}: ${dollars(cost.storage)}`,
      `${size(cost.sentGb)}: ${dollars(cost.traffic)}`,
      dollars(cost.total),
      `$${perMillion.toFixed(2)}`,
    ].join(' | ')} |`;
  });
  return [
    '| Deliveries/s, log | vCPU: management | dispatchers | Redis, twice | PostgreSQL, twice | Compute | Log | Traffic | A month | A million |',
    `|${'---|'.repeat(10)}`,
    ...lines,
  ].join('\n');
}

if (values['write-docs']) {
  const page = join(root, 'docs', 'scaling.md');
  const text = readFileSync(page, 'utf8');
  writeFileSync(
    page,
    text.replace(/(<!-- cost -->\n\n)[\s\S]*?(\n\n<!-- end -->)/, (_, a, b) => a + table() + b),
  );
} else {
  process.stdout.write(`${table()}\n\n`);
  for (const [name, [, what]] of Object.entries(PRICES))
    process.stdout.write(`--${name.padEnd(9)} $${price[name]}  ${what}\n`);
}
