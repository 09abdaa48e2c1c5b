import { randomUUID } from 'node:crypto';
import { EVENT_TYPES } from '@runhook/contract';
import { createServiceToken } from '@runhook/database';
import { eventually, seedAccount, seedSubscription, type TestAccount } from '@runhook/testing';
import { HANGING } from './endpoint.ts';
import { DEEP, INVALID_TEXTS, ODD_JSON, ODD_NUMBERS, TEXTS, VALID_TEXTS } from './poison-texts.ts';
import { PoisonedEvents } from './poisoned-events.ts';
import { addJobs, addOddJobs, publish } from './poisoned-queue.ts';
import { publishFromPython } from './python-publisher.ts';
import type { Stores } from './servers.ts';
import { isLong, type World as WorldOn } from './world.ts';

type World = WorldOn<Stores>;

/**
 * Sends all kinds of data of a tenant, through every entry point. Accepted events must be delivered, and other tenants must not be
 * affected.
 */
export class PoisonedTenant {
  readonly #world: World;
  readonly #account: TestAccount;
  readonly #events: PoisonedEvents;
  readonly #token: string;
  readonly #subscriptionId: string;
  #accepted = 0;

  private constructor(world: World, account: TestAccount, token: string, subscriptionId: string) {
    this.#world = world;
    this.#account = account;
    this.#events = new PoisonedEvents(account);
    this.#token = token;
    this.#subscriptionId = subscriptionId;
  }

  static async open(world: World): Promise<PoisonedTenant> {
    const account = await seedAccount(world.database);
    const { token } = await createServiceToken(world.database.prisma, {
      accountId: account.id,
      name: 'poison',
      permissionSets: ['account_admin'],
    });
    const subscription = await seedSubscription(world.database, {
      accountId: account.id,
      clientUrl: `${world.endpoint.url}${HANGING}`,
    });
    return new PoisonedTenant(world, account, token, subscription.id);
  }

  /** Resolves when management can respond from its database. */
  async waitUntilReachable(): Promise<void> {
    await eventually(async () => {
      const status = await this.#call('GET', 'v2', '/runs/');
      if (status !== 200) throw new Error(`GET runs/ returned ${status}`);
    });
  }

  /** Sends through every entry point. The short form omits those that publish no event, and Python. */
  async send(): Promise<void> {
    await Promise.all([...TEXTS.map((text) => this.#report(text)), ...(isLong ? this.#configureAll() : [])]);
    await this.#publishOverRest();
    this.#accepted += await publish(this.#world, this.#events);
    this.#accepted += await addJobs(this.#world, this.#events);
    this.#accepted += await addOddJobs(this.#world, this.#events);
    if (isLong) this.#accepted += await publishFromPython(this.#world, this.#events);
  }

  /**
   * Publishes events while the endpoint does not respond, so that their deliveries are in flight at the kill. It responds again before the
   * recovery, which may take longer than all attempts of a delivery.
   */
  async crash(kill: () => Promise<unknown>, recover: () => Promise<unknown>): Promise<void> {
    const { endpoint } = this.#world;
    endpoint.suspend();
    try {
      this.#accepted += await publish(this.#world, this.#events);
      await kill();
    } finally {
      endpoint.resume();
    }
    await recover();
  }

  /** Returns a description of each problem, once no event and no delivery is pending. */
  async problems(): Promise<string[]> {
    const { database, endpoint } = this.#world;
    const { rows } = await database.pool.query<{ status: string; count: number }>(
      'SELECT status, count(*)::int AS count FROM deliveries WHERE account_id = $1 GROUP BY status',
      [this.#account.id],
    );
    const found = JSON.stringify(Object.fromEntries(rows.map(({ status, count }) => [status, count])));
    const expected = JSON.stringify({ delivered: this.#accepted });
    const runEvents = await this.#call('GET', 'v3', '/webhooks/run/1/events');
    return [
      ...(found === expected ? [] : [`deliveries of poisoned events are ${found} instead of ${expected}`]),
      ...(runEvents === 200 ? [] : [`reading the events of a run returned ${runEvents}`]),
      ...endpoint.invalidBodies,
    ];
  }

  #configureAll(): Promise<void>[] {
    return [
      ...INVALID_TEXTS.map((text) => this.#configure(text, 400)),
      ...VALID_TEXTS.map((text) => this.#configure(text, 200)),
      this.#configureOddly(),
    ];
  }

  /** Sets names and descriptions of a webhook and of a job. The headers of a webhook must be printable ASCII. */
  async #configure(text: string, status: 200 | 400): Promise<void> {
    const short = text.slice(0, 200);
    await this.#putWebhook({ name: short }, status);
    await this.#putWebhook({ description: short }, status);
    await this.#putWebhook({ headers: { 'X-Gate': text } }, 400);
    await this.#putWebhook({ headers: { [`X-${text}`]: 'a' } }, 400);
    const job = { name: 'Poisoned', project_name: 'Warehouse', environment_name: 'Production' };
    for (const field of Object.keys(job)) {
      const body = JSON.stringify({ ...job, [field]: short });
      await this.#expect(status === 200 ? 201 : 400, '/jobs/', body);
    }
  }

  /** Sends numbers that are no ids, and JSON that is nested too deeply. */
  async #configureOddly(): Promise<void> {
    const run = (more: string) => `{"engine_version":"1"${more}}`;
    const job = `,"job_id":${this.#events.job.id}`;
    for (const number of ODD_NUMBERS) {
      await this.#expect(400, '/runs/', run(`,"job_id":${number}`));
      await this.#expect(400, '/runs/', run(`${job},"run_id":${number}`));
      await this.#putWebhook({}, 400, `,"job_ids":[${number}]`);
    }
    await this.#expect(400, '/runs/', run(`${job}${DEEP}`));
    await this.#expect(400, '/jobs/', `{"name":"deep"${DEEP}}`);
    await this.#expect(400, '/events/', `{"events":[]${DEEP}}`);
    await this.#putWebhook({}, 400, DEEP);
    // The last of two members with the same name counts.
    const { runId } = this.#events.next();
    const repeated = `,"job_id":1e400${job},"reason":"cut \\ud83d","reason":"a\\u0000b","run_id":-0,"run_id":${runId}`;
    await this.#expect(201, '/runs/', run(repeated));
    this.#accepted += 1;
  }

  async #putWebhook(fields: object, status: number, more = ''): Promise<void> {
    const webhook = {
      name: 'Poisoned',
      event_types: EVENT_TYPES,
      client_url: `${this.#world.endpoint.url}${HANGING}`,
    };
    const json = JSON.stringify({ ...webhook, ...fields });
    const path = `/webhooks/subscription/${this.#subscriptionId}`;
    await this.#expect(status, path, `${json.slice(0, -1)}${more}}`, 'PUT');
  }

  /** Reports a run from its start to its artifacts, whose call has no fields. */
  async #report(text: string): Promise<void> {
    const { runId } = this.#events.next();
    const start = {
      job_id: this.#events.job.id,
      run_id: runId,
      engine_version: text.slice(0, 200),
      reason: text,
    };
    await this.#expect(201, '/runs/', JSON.stringify(start));
    const finish = { status: 'errored', status_message: text };
    await this.#expect(400, `/runs/${runId}/finish/`, JSON.stringify({ ...finish, status: text }));
    await this.#expect(200, `/runs/${runId}/finish/`, JSON.stringify(finish));
    await this.#expect(200, `/runs/${runId}/artifacts/`, JSON.stringify({ [text.slice(0, 200)]: text }));
    this.#accepted += 3;
  }

  async #publishOverRest(): Promise<void> {
    const events = this.#events.withTexts();
    await this.#expect(202, '/events/', JSON.stringify({ events }));
    this.#accepted += events.length;
    for (const odd of ODD_JSON) {
      await this.#expect(
        odd.isEvent ? 202 : 400,
        '/events/',
        `{"events":[${this.#events.withOddJson(odd)}]}`,
      );
      this.#accepted += odd.isEvent ? 1 : 0;
    }
  }

  async #expect(status: number, path: string, body: string, method: 'POST' | 'PUT' = 'POST'): Promise<void> {
    const idempotencyKey = randomUUID();
    const accepted = await eventually(async () => {
      const version = path.startsWith('/webhooks/') ? 'v3' : 'v2';
      const headers = method === 'POST' ? { 'idempotency-key': idempotencyKey } : {};
      const accepted = await this.#call(method, version, path, body, headers);
      if (accepted === 503) throw new Error(`${method} ${path} returned 503`);
      return accepted;
    });
    if (accepted !== status) throw new Error(`${method} ${path} returned ${accepted}: ${body.slice(0, 200)}`);
  }

  async #call(method: string, version: string, path: string, body?: string, more = {}): Promise<number> {
    const url = `${this.#world.management.url}/api/${version}/accounts/${this.#account.id}${path}`;
    const headers = { authorization: `Token ${this.#token}`, 'content-type': 'application/json', ...more };
    const response = await fetch(url, { method, headers, ...(body === undefined ? {} : { body }) });
    await response.arrayBuffer();
    return response.status;
  }
}
