import * as contract from '@runhook/contract';
import * as databasePackage from '@runhook/database';
import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import * as testing from '@runhook/testing';
import { startService } from '../../services.ts';

/** A Wednesday in the middle of an hour, so that the hours of the last day do not change while pictures are taken. */
export const STILL_NOW_MS = Date.UTC(2026, 2, 18, 10, 30);

/** Management with demonstration data of a day, with a fixed clock and fixed ids. */
export interface StillWorld {
  url: string;
  /** Session cookie of a user who has all permissions. */
  cookie: { name: string; value: string };
  accountId: number;
  /** The first webhook has deliveries of every status. */
  webhookIds: string[];
  /** A delivery that succeeded on its third attempt. */
  deliveryId: string;
  close(): Promise<void>;
}

interface DemoData {
  account: { id: number };
  person: { email: string; password: string };
  jobs: { id: number; name: string }[];
  webhookIds: string[];
}

const DEMO_DATA = new URL('../../../scripts/pictures/demo-data.mjs', import.meta.url);
const CLOCK_PRELOAD = new URL('../../chaos/clock-ahead.mjs', import.meta.url);

/** Creates the data that the pictures of docs/console.md show, at a fixed time. */
export async function openStillWorld(): Promise<StillWorld> {
  const closers: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer();
  };
  try {
    const testDatabase = await testing.createTestDatabase();
    closers.push(() => testDatabase.drop());
    await freezeTimes(testDatabase.url);
    const database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: testing.WAIT_TIMEOUT_MS });
    closers.push(() => database.close());
    const demo = await seed(database);
    const deliveryId = await seedFailedDelivery(database, demo);
    const management = await startService('management', {
      DATABASE_URL: testDatabase.url,
      QUEUE_URL: testDatabase.url,
      NODE_OPTIONS: `--import=${CLOCK_PRELOAD.href}`,
      CLOCK_AHEAD_MS: String(STILL_NOW_MS - Date.now()),
    });
    closers.push(() => management.stop());
    return {
      url: management.url,
      cookie: await signIn(management.url, demo.person),
      accountId: demo.account.id,
      webhookIds: demo.webhookIds,
      deliveryId,
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Makes `now()` of the database return a constant, also in the defaults of columns. */
async function freezeTimes(url: string): Promise<void> {
  const { pool, close } = databasePackage.openDatabase({ url });
  const stillTime = `timestamptz '${new Date(STILL_NOW_MS).toISOString()}'`;
  const clock = (name: string) =>
    `CREATE FUNCTION still.${name}() RETURNS timestamptz LANGUAGE sql STABLE AS $$ SELECT ${stillTime} $$;`;
  await pool.query(`
    CREATE SCHEMA still; GRANT USAGE ON SCHEMA still TO PUBLIC; ${clock('now')} ${clock('clock_timestamp')}
    DO $$ DECLARE place record; BEGIN
      FOR place IN SELECT table_name, column_name FROM information_schema.columns
        WHERE table_schema = 'public' AND column_default = 'CURRENT_TIMESTAMP'
      LOOP
        EXECUTE format('ALTER TABLE %I ALTER COLUMN %I SET DEFAULT still.now()', place.table_name, place.column_name);
      END LOOP;
      EXECUTE format('ALTER DATABASE %I SET search_path = public, still, pg_catalog', current_database());
    END $$;`);
  await close();
}

async function seed(database: PrismaDatabase): Promise<DemoData> {
  const { seedDemoData } = (await import(DEMO_DATA.href)) as {
    seedDemoData(options: object): Promise<DemoData>;
  };
  let subscriptions = 0;
  return await seedDemoData({
    database,
    databasePackage,
    contract: { ...contract, createId: createIdSequence() },
    testing: {
      ...testing,
      async seedSubscription(...seeded: Parameters<typeof testing.seedSubscription>) {
        const { id: drawn } = await testing.seedSubscription(...seeded);
        subscriptions += 1;
        const id = deterministicId('subscription', STILL_NOW_MS, subscriptions);
        await database.prisma.subscription.update({ where: { id: drawn }, data: { id } });
        return { id };
      },
    },
    receiverUrl: 'https://pager.example.com/hooks',
    nowMs: STILL_NOW_MS,
  });
}

/** Returns an id that is the same in every run and has the form of all ids. */
function deterministicId(kind: contract.IdKind, timeMs: number, number: number): string {
  const derived = contract.deliveryIdFor(contract.eventIdForJob(`${kind} ${number}`, timeMs), kind);
  return contract.createId(kind, timeMs).slice(0, 4) + derived.slice(4);
}

function createIdSequence() {
  let count = 0;
  return (kind: contract.IdKind, timeMs: number) => {
    count += 1;
    return deterministicId(kind, timeMs, count);
  };
}

const ENDED_MS = STILL_NOW_MS - 90_000;

/** Adds a delivery that failed twice and then succeeded, as the newest of the log. */
async function seedFailedDelivery({ pool }: PrismaDatabase, { webhookIds }: DemoData): Promise<string> {
  const { rows } = await pool.query<{ id: string; day: string }>(
    `UPDATE deliveries SET status = 'delivered', reason = NULL, attempt_count = 3, http_status_code = 200,
       error_code = NULL, duration_ms = 84, created_at = $2, completed_at = $3
     WHERE id = (SELECT id FROM deliveries WHERE subscription_id = $1 ORDER BY created_at DESC, id DESC LIMIT 1)
     RETURNING id, day::text`,
    [webhookIds[0], new Date(ENDED_MS - 21_000), new Date(ENDED_MS)],
  );
  const [delivery] = rows;
  if (delivery === undefined) throw new Error('the seeded log has no delivery');
  const failedAttempt = {
    status: 503,
    error: 'unsuccessful_status',
    body: 'The pager is being updated. Try again.',
  };
  const attempts = [
    { ...failedAttempt, agoMs: 20_000, durationMs: 112 },
    { ...failedAttempt, agoMs: 14_000, durationMs: 97 },
    { status: 200, error: null, body: '{"page":"sent"}', agoMs: 84, durationMs: 84 },
  ];
  for (const [index, { status, error, body, agoMs, durationMs }] of attempts.entries()) {
    await pool.query(
      `INSERT INTO attempts (day, delivery_id, number, trigger, started_at, duration_ms, http_status_code, error_code,
         error_message, request_headers, response_headers, response_body, response_truncated,
         dns_ms, connect_ms, tls_ms, first_byte_ms, total_ms, account_id)
       SELECT $1, $2, $3, 'automatic', $4, $5, $6, $7, $8, $9, $10, $11, false, 2, 9, 21, $12, $5, account_id
       FROM deliveries WHERE day = $1 AND id = $2`,
      [
        delivery.day,
        delivery.id,
        index + 1,
        new Date(ENDED_MS - agoMs),
        durationMs,
        status,
        error,
        error && `The endpoint responded with ${status}.`,
        { 'content-type': 'application/json', authorization: '••••••••', 'user-agent': 'Runhook' },
        { 'content-type': status === 200 ? 'application/json' : 'text/plain' },
        body,
        durationMs - 40,
      ],
    );
  }
  return delivery.id;
}

async function signIn(url: string, person: DemoData['person']): Promise<StillWorld['cookie']> {
  const response = await fetch(`${url}/api/v3/session`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ email: person.email, password: person.password }),
  });
  if (response.status !== 201) throw new Error(`the sign-in returned ${response.status}`);
  const [name = '', value = ''] = (response.headers.getSetCookie()[0]?.split(';')[0] ?? '').split('=');
  return { name, value };
}
