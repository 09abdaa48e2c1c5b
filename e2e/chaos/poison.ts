import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { JOB_RUN_EVENTS, type JobRunEvent, shardPrefix } from '@runhook/contract';
import { createServiceToken, isItemFault } from '@runhook/database';
import { createEventPublisher } from '@runhook/publisher';
import { createQueueBackend } from '@runhook/queue';
import { eventually, exampleEvent, seedAccount, seedSubscription, type TestAccount } from '@runhook/testing';
import { HEALTHY } from './endpoint.ts';
import { type Failover, failover, needsRedis } from './failover.ts';
import type { Aftermath, Fault } from './faults.ts';
import type { SeededRandom } from './seeded-random.ts';
import type { Servers, Stores } from './servers.ts';
import { type StandbyServers, startStandbyServers } from './standby.ts';
import type { World as WorldOn } from './world.ts';

type World = WorldOn<Stores>;

/** Texts that PostgreSQL, jsonb, Go, Rust or Java rejects, and some that only look as if. */
const TEXTS = [
  'cut \ud83d',
  '\ude80 cut',
  '\ude80\ud83d',
  'a\0b',
  '\ufffe \uffff',
  '\ufdd0 \ufdef',
  '\u{1fffe} \u{10ffff}',
  `a${'\u0301'.repeat(10_000)}`,
  '"\\\u2028\ufeff\u0001</script>',
];

/** JSON of an event's code, or of further fields, that parsers read differently or not at all; and whether it is a valid event. */
const ODD_JSON: readonly { code?: string; more?: string; isEvent: boolean }[] = [
  { code: '-0', isEvent: true },
  { code: '3.0', isEvent: true },
  { code: '9007199254740993', isEvent: false },
  { code: '1e400', isEvent: false },
  { code: '3,"jobName":"the second \\ud83d","jobName":"the third \\ude80"', isEvent: true },
  { more: `,"more":${'['.repeat(15)}${']'.repeat(15)}`, isEvent: true },
];
/** Nested more deeply than the body of a request may be; the queue does not check that. */
const DEPTH = 5_000;

/** Sends what a tenant can send, by every entry point. Accepted events must be delivered, and other tenants must not be affected. */
class PoisonedTenant {
  readonly #world: World;
  readonly #account: TestAccount;
  readonly #token: string;
  #accepted = 0;
  #runs = 0;
  #oddities = 0;

  private constructor(world: World, account: TestAccount, token: string) {
    this.#world = world;
    this.#account = account;
    this.#token = token;
  }

  static async open(world: World): Promise<PoisonedTenant> {
    const account = await seedAccount(world.database);
    const { token } = await createServiceToken(world.database.prisma, {
      accountId: account.id,
      name: 'poison',
      permissionSets: ['account_admin'],
    });
    await seedSubscription(world.database, {
      accountId: account.id,
      clientUrl: `${world.endpoint.url}${HEALTHY}`,
    });
    return new PoisonedTenant(world, account, token);
  }

  /** Resolves when management can answer from its database. */
  async reachable(): Promise<void> {
    await eventually(async () => {
      const status = await this.#call('GET', 'v2', '/runs/');
      if (status !== 200) throw new Error(`GET runs/ was answered ${status}`);
    });
  }

  async send(): Promise<void> {
    for (const text of TEXTS) await this.#report(text);
    await this.#publishOverRest();
    await this.#publish();
    await this.#addJobs();
  }

  /** Returns a description of each fault, once no event and no delivery waits. */
  async problems(): Promise<string[]> {
    const { database, endpoint } = this.#world;
    const { rows } = await database.pool.query<{ status: string; count: number }>(
      'SELECT status, count(*)::int AS count FROM deliveries WHERE account_id = $1 GROUP BY status',
      [this.#account.id],
    );
    const found = JSON.stringify(Object.fromEntries(rows.map(({ status, count }) => [status, count])));
    const wanted = JSON.stringify({ delivered: this.#accepted });
    const runEvents = await this.#call('GET', 'v3', '/webhooks/run/1/events');
    return [
      ...(found === wanted ? [] : [`deliveries of poisoned events are ${found} instead of ${wanted}`]),
      ...(runEvents === 200 ? [] : [`the events of a run were answered with ${runEvents}`]),
      ...endpoint.invalidBodies,
    ];
  }

  async #report(text: string): Promise<void> {
    this.#runs += 1;
    const id = this.#runs;
    const [short, job_id] = [text.slice(0, 200), this.#job.id];
    const start = { job_id, run_id: id, engine_version: short, reason: text };
    await this.#expect(201, '/runs/', JSON.stringify(start));
    const finish = { status: 'errored', status_message: text };
    await this.#expect(200, `/runs/${id}/finish/`, JSON.stringify(finish));
    this.#accepted += 2;
  }

  async #publishOverRest(): Promise<void> {
    const events = TEXTS.map((text) => this.#poisoned(text));
    await this.#expect(202, '/events/', JSON.stringify({ events }));
    this.#accepted += events.length;
    for (const odd of ODD_JSON) {
      await this.#expect(odd.isEvent ? 202 : 400, '/events/', `{"events":[${this.#oddEvent(odd)}]}`);
      this.#accepted += odd.isEvent ? 1 : 0;
    }
  }

  async #publish(): Promise<void> {
    const publisher = createEventPublisher({ queueUrl: this.#world.servers.queueUrl });
    try {
      const events = TEXTS.map((text) => this.#poisoned(text));
      // On a busy machine a connection may take longer than a call waits. Events have ids, so a repeat changes nothing.
      this.#accepted += (await eventually(() => publisher.publishMany(events))).length;
    } finally {
      await publisher.close();
    }
  }

  /** Adds the job as a foreign publisher does. PostgreSQL rejects some of these jobs in this call, and then nothing was accepted. */
  async #addJobs(): Promise<void> {
    const queue = createQueueBackend(this.#world.servers.queueUrl).createQueue<unknown>(JOB_RUN_EVENTS);
    try {
      for (const text of TEXTS) {
        const event = this.#poisoned(text);
        this.#accepted += (await eventually(() => isAdded(queue.add(event.eventType, event)))) ? 1 : 0;
      }
      if (!('redis' in this.#world.servers)) return;
      const { redis } = this.#world.servers as Servers;
      if (this.#world.backend !== 'Redis') return;
      const deep = `,"more":${'['.repeat(DEPTH)}${']'.repeat(DEPTH)}`;
      for (const odd of [
        ...ODD_JSON,
        { more: deep, isEvent: true },
        { code: '1.5', more: deep, isEvent: false },
      ]) {
        this.#oddities += 1;
        const job = await queue.add(
          'odd',
          {},
          { jobId: `odd-${this.#account.id}-${this.#oddities}`, delay: 3_600_000 },
        );
        const key = `${shardPrefix(0)}:${JOB_RUN_EVENTS}:${job.id}`;
        await redis(`HSET ${key} data "${this.#oddEvent(odd).replace(/["\\]/g, '\\$&')}"`);
        await job.promote();
        this.#accepted += odd.isEvent ? 1 : 0;
      }
    } finally {
      await queue.close();
    }
  }

  get #job() {
    return this.#account.jobs[0] as TestAccount['jobs'][number];
  }

  #event(): JobRunEvent {
    this.#runs += 1;
    return exampleEvent('job.run.errored', this.#job, this.#runs);
  }

  #poisoned(text: string): JobRunEvent {
    const event = this.#event();
    const short = text.slice(0, 1_000);
    const names = { jobName: short, environmentName: short, engineVersion: short, projectName: short };
    const data = { ...event.data, ...names, runStatus: short, runReason: text, runStatusMessage: text };
    return { ...event, data } as JobRunEvent;
  }

  #oddEvent({ code = '20', more = '' }: { code?: string; more?: string }): string {
    const json = JSON.stringify(this.#event());
    return `${json.replace(/"runStatusCode":\d+/, `"runStatusCode":${code}`).slice(0, -1)}${more}}`;
  }

  async #expect(status: number, path: string, body: string): Promise<void> {
    const idempotencyKey = randomUUID();
    const answered = await eventually(async () => {
      const answered = await this.#call('POST', 'v2', path, body, { 'idempotency-key': idempotencyKey });
      if (answered === 503) throw new Error(`POST ${path} was answered 503`);
      return answered;
    });
    if (answered !== status) throw new Error(`POST ${path} was answered ${answered}: ${body.slice(0, 200)}`);
  }

  async #call(method: string, version: string, path: string, body?: string, more = {}): Promise<number> {
    const url = `${this.#world.management.url}/api/${version}/accounts/${this.#account.id}${path}`;
    const headers = { authorization: `Token ${this.#token}`, 'content-type': 'application/json', ...more };
    const response = await fetch(url, { method, headers, ...(body === undefined ? {} : { body }) });
    await response.arrayBuffer();
    return response.status;
  }
}

/** False when PostgreSQL rejects the job for its data; rejects when the queue was not reached. */
async function isAdded(call: Promise<unknown>): Promise<boolean> {
  try {
    await call;
    return true;
  } catch (error) {
    if (isItemFault(error)) return false;
    throw error;
  }
}

/** Sends before the crash and after it; the aftermath is of both. */
async function poisoned(
  world: World,
  crash: () => Promise<unknown> = async () => undefined,
): Promise<Aftermath> {
  world.endpoint.invalidBodies.length = 0;
  const tenant = await PoisonedTenant.open(world);
  await tenant.send();
  await crash();
  await tenant.reachable();
  await tenant.send();
  return () => tenant.problems();
}

const away = (random: SeededRandom) => wait(random.between(300, 1_500));

/** Another account of the same installation sends what stores reject. */
export const POISON: Fault[] = [
  {
    name: "another account's texts are what stores reject",
    drainedWithinSeconds: 10,
    strike: (world) => poisoned(world),
  },
  {
    name: "another account's texts are what stores reject, then PostgreSQL, Redis and a dispatcher are killed",
    strike: (world, random) =>
      poisoned(world, async () => {
        const { servers } = world;
        await world.kill(
          servers.killPostgres,
          servers.killRedis,
          async () => await world.dispatchers[0]?.kill(),
        );
        await away(random);
        await Promise.all([servers.restartPostgres(), servers.restartRedis()]);
        await world.startDispatcher(0);
      }),
  },
];

/** The same with another server in the place of PostgreSQL. */
export const POISON_FAILOVERS: Failover[] = (['PostgreSQL', 'Redis'] as const).map((backend) =>
  failover<StandbyServers>('postgres', {
    name: `PostgreSQL, synchronous, queue on ${backend}: the primary killed among texts that stores reject`,
    backend,
    start: () => startStandbyServers(backend, { isSynchronous: true }),
    leftOut: () => (backend === 'Redis' ? needsRedis() : null),
    strike: (world) =>
      poisoned(world, async () => {
        await world.kill(world.servers.killPrimary);
        await world.servers.promote(world);
      }),
  }),
);
