import { randomUUID } from 'node:crypto';
import { addMembership, createUser } from '@runhook/database';
import { eventually, queueBackends, testSecrets } from '@runhook/testing';
import { openSystem, type System } from '../observability/system.ts';
import type { RunningService } from '../services.ts';
import type { Attack } from './attack.ts';

const PASSWORD = 'correct horse battery staple';
const RECOGNIZED_BROWSER = 'recognized browser';
const NEW_BROWSER = 'new browser';
/** Maximum time of a sign-in of the owner; checked only by `npm run attack`, since `npm test` runs with other load. */
const SIGN_IN_MAX_MS = 2_000;
/** Number of sign-ins of the owner during each flood, with each kind of browser. */
const OWNER_SIGN_INS = 8;
const OWNER_SIGN_INS_SMALL = 1;

interface Flood {
  name: string;
  connections: number;
  /** Client address of a request. */
  addressOf(index: number): string;
  emailOf(index: number, owner: Owner): string;
  /** Browsers in which the owner must be able to sign in. */
  browsers: readonly string[];
  /**
   * Whether the time of a new browser is not checked: it comes after the first check of each network of the flood, which
   * takes seconds on a machine that also runs the flood.
   */
  isUntimedForNewBrowser?: true;
  /** Whether `npm test` runs it, too. */
  isShort?: true;
}

interface Owner {
  id: number;
  email: string;
}

const changingAddress = (index: number) => `198.${index % 256}.${(index >> 8) % 256}.7`;
const unknownEmail = (index: number) => `unknown-${index}@example.com`;

const FLOODS: readonly Flood[] = [
  {
    name: 'unknown e-mails, changing networks',
    connections: 48,
    addressOf: changingAddress,
    emailOf: unknownEmail,
    browsers: [RECOGNIZED_BROWSER, NEW_BROWSER],
    isShort: true,
  },
  {
    name: 'unknown e-mails, one IPv6 site',
    connections: 200,
    addressOf: (index) => `2001:db8:1:${(index % 65_536).toString(16)}::7`,
    emailOf: unknownEmail,
    browsers: [RECOGNIZED_BROWSER, NEW_BROWSER],
  },
  {
    name: 'unknown e-mails, 100 networks',
    connections: 200,
    isUntimedForNewBrowser: true,
    addressOf: (index) => `198.51.${index % 100}.${Math.floor(index / 100) % 256}`,
    emailOf: unknownEmail,
    browsers: [RECOGNIZED_BROWSER, NEW_BROWSER],
  },
  {
    name: "the owner's e-mail, changing networks",
    connections: 48,
    addressOf: changingAddress,
    // The limit of an e-mail address from everywhere locks unknown browsers out: docs/security.md.
    emailOf: (_index, { email }) => email,
    browsers: [RECOGNIZED_BROWSER],
    isShort: true,
  },
];

interface Row {
  flood: string;
  browser: string;
  statuses: Map<number, number>;
  slowestMs: number;
  isTimed: boolean;
  floodStatuses: Map<number, number>;
}

/**
 * Floods the sign-in with wrong credentials, while the owner signs in with the right password, in a browser that has
 * signed in before and in new ones, from a network that takes no part in the flood.
 */
export const signInFlood: Attack = {
  name: 'sign-in flood',
  async run({ endsAtMs, isSmall = false, log }) {
    const backend = queueBackends().at(-1);
    if (!backend) throw new Error('there is no queue back end');
    const system = await openSystem(backend);
    const rows: Row[] = [];
    const problems: string[] = [];
    try {
      const management = await system.start('management', {
        TRUSTED_PROXY_CIDRS: '127.0.0.0/8',
        LOG_LEVEL: 'info',
        // Twenty failures with an e-mail address reach its limit, each of which costs a password hash.
        SIGN_IN_ATTEMPTS_PER_EMAIL: '1',
      });
      const signIns = isSmall ? OWNER_SIGN_INS_SMALL : OWNER_SIGN_INS;
      do {
        for (const flood of FLOODS.filter(({ isShort }) => isShort || !isSmall)) {
          // A flood can reach the limits of the owner's e-mail address.
          const found = await runFlood(management, await createOwner(system), { flood, signIns });
          rows.push(...found);
          if (endsAtMs !== null) for (const row of found) log(describeRow(row));
        }
      } while (endsAtMs !== null && Date.now() < endsAtMs);
      problems.push(
        ...rows.flatMap((row) => problemsOf(endsAtMs === null ? { ...row, isTimed: false } : row)),
      );
      problems.push(...(await reportProblems(system, management)));
    } finally {
      await system.close();
    }
    return { table: formatTable(rows), problems };
  },
};

async function createOwner({ database, account }: System): Promise<Owner> {
  const email = `owner-${randomUUID()}@example.com`;
  const { id } = await createUser(database.prisma, testSecrets, { email, name: 'Owner', password: PASSWORD });
  const membership = { accountId: account.id, userId: id, license: 'developer' } as const;
  await addMembership(database.prisma, { ...membership, permissionSets: [] });
  return { id, email };
}

let ownerNetworks = 0;
/** Returns an address of a network that has not been used before. */
const newOwnerAddress = () => `203.0.${ownerNetworks++ % 256}.9`;

async function runFlood(
  management: RunningService,
  owner: Owner,
  { flood, signIns }: { flood: Flood; signIns: number },
): Promise<Row[]> {
  const credentials = { email: owner.email, password: PASSWORD };
  const { cookie } = await signIn(management, credentials, newOwnerAddress());
  const floodStatuses = new Map<number, number>();
  const ended = new AbortController();
  let sent = 0;
  const attack = async () => {
    while (!ended.signal.aborted) {
      const index = sent++;
      const wrong = { email: flood.emailOf(index, owner), password: 'wrong' };
      const { status } = await signIn(management, wrong, flood.addressOf(index));
      increment(floodStatuses, status);
    }
  };
  const attackers = Array.from({ length: flood.connections }, attack);
  const respondedCount = () => [...floodStatuses.values()].reduce((sum, count) => sum + count, 0);
  try {
    await eventually(async () => {
      if (respondedCount() < flood.connections) throw new Error('the flood has not begun');
    });
    const rows: Row[] = [];
    for (const browser of flood.browsers) {
      const isTimed = browser === RECOGNIZED_BROWSER || !flood.isUntimedForNewBrowser;
      const row: Row = {
        flood: flood.name,
        browser,
        statuses: new Map(),
        slowestMs: 0,
        isTimed,
        floodStatuses,
      };
      for (let times = 0; times < signIns; times++) {
        const startedMs = performance.now();
        const ownCookie = browser === RECOGNIZED_BROWSER ? cookie : undefined;
        const { status } = await signIn(management, credentials, newOwnerAddress(), ownCookie);
        row.slowestMs = Math.max(row.slowestMs, performance.now() - startedMs);
        increment(row.statuses, status);
      }
      rows.push(row);
    }
    return rows;
  } finally {
    ended.abort();
    await Promise.allSettled(attackers);
  }
}

/** Returns the status, and the `Cookie` header by which the browser is recognized. */
async function signIn(
  { url }: RunningService,
  { email, password }: { email: string; password: string },
  address: string,
  cookie?: string,
): Promise<{ status: number; cookie: string | undefined }> {
  const response = await fetch(`${url}/api/v3/session`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'x-forwarded-for': address,
      ...(cookie === undefined ? {} : { cookie }),
    },
    body: JSON.stringify({ email, password }),
  });
  await response.arrayBuffer();
  const deviceCookie = response.headers.getSetCookie().find((text) => text.startsWith('runhook_device='));
  return { status: response.status, cookie: deviceCookie?.split(';')[0] };
}

function increment(counts: Map<number, number>, status: number): void {
  counts.set(status, (counts.get(status) ?? 0) + 1);
}

function problemsOf({ flood, browser, statuses, slowestMs, isTimed, floodStatuses }: Row): string[] {
  const problems: string[] = [];
  if ([...statuses.keys()].some((status) => status !== 201))
    problems.push(`${flood}: the owner's ${browser} got ${describeCounts(statuses)}`);
  if (isTimed && slowestMs > SIGN_IN_MAX_MS)
    problems.push(`${flood}: the owner's ${browser} took ${Math.round(slowestMs)} ms`);
  if ([...floodStatuses.keys()].some((status) => ![401, 429, 503].includes(status)))
    problems.push(`${flood}: the flood got ${describeCounts(floodStatuses)}`);
  return problems;
}

/** Checks the metric, and that the flood wrote no entry of the audit log for each attempt. */
async function reportProblems({ database }: System, { operationsUrl }: RunningService): Promise<string[]> {
  const problems: string[] = [];
  const metrics = await (await fetch(`${operationsUrl}/metrics`)).text();
  for (const reason of ['unknown_email', 'wrong_password', 'limited']) {
    const pattern = new RegExp(`^runhook_sign_in_failures_total\\{reason="${reason}".*\\} (\\d+)$`, 'm');
    if (!(Number(pattern.exec(metrics)?.[1]) > 0))
      problems.push(`the metric has no failures with the reason ${reason}`);
  }
  const action = 'session.sign_in_failed';
  const entries = await database.prisma.auditEntry.count({ where: { action } });
  if (entries > 0) problems.push(`the flood wrote ${entries} entries of the audit log`);
  return problems;
}

function describeCounts(counts: ReadonlyMap<number, number>): string {
  return [...counts].map(([status, count]) => `${count} x ${status}`).join(', ');
}

function describeRow({ flood, browser, statuses, slowestMs, floodStatuses }: Row): string {
  const [owner, others] = [describeCounts(statuses), describeCounts(floodStatuses)];
  return `${flood}, ${browser}: ${owner}, at most ${Math.round(slowestMs)} ms; flood: ${others}`;
}

function formatTable(rows: readonly Row[]): string {
  return [
    '| flood | browser of the owner | owner | slowest, ms | flood |',
    '|---|---|---|---|---|',
    ...rows.map(
      ({ flood, browser, statuses, slowestMs, floodStatuses }) =>
        `| ${flood} | ${browser} | ${describeCounts(statuses)} | ${Math.round(slowestMs)} | ${describeCounts(floodStatuses)} |`,
    ),
  ].join('\n');
}
