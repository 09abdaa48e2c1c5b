import { openPrismaDatabase, type PrismaDatabase } from '@runhook/database/prisma';
import {
  createTestDatabase,
  createTestQueueUrl,
  IN_VAIN_MS,
  type Receiver,
  startReceiver,
} from '@runhook/testing';
import { type RunningService, startService } from '../../services.ts';
import { PASSWORD, type People, type PersonName, seedPeople } from './people.ts';

/** The services as processes on a database of their own, somebody to sign in, and an endpoint to deliver to. */
export interface World extends People {
  /** Management's, which serves the console. */
  url: string;
  database: PrismaDatabase;
  receiver: Receiver;
  management: RunningService;
  dispatcher: RunningService;
  environment: Record<string, string>;
  /** Calls the API with the person's key. @param path below `/api`, with its slash: `/v3/profile` */
  call<Data>(person: PersonName, method: string, path: string, body?: object): Promise<Data>;
  /** Reports a run of the enterprise account's first job, from its start to its artifacts; answers its id. */
  run(status?: 'success' | 'errored'): Promise<number>;
  /** `Cookie` of a session of the person; one for all that ask, unless it is `fresh`. */
  sessionOf(person: PersonName, options?: { fresh?: boolean }): Promise<string>;
  close(): Promise<void>;
}

export async function openWorld(extraEnvironment: Record<string, string> = {}): Promise<World> {
  const closers: (() => Promise<unknown>)[] = [];
  const close = async () => {
    for (const closer of closers.splice(0).reverse()) await closer();
  };
  try {
    const testDatabase = await createTestDatabase();
    closers.push(() => testDatabase.drop());
    const database = openPrismaDatabase({ url: testDatabase.url, connectTimeoutMs: IN_VAIN_MS });
    closers.push(() => database.close());
    const environment = {
      DATABASE_URL: testDatabase.url,
      QUEUE_URL: await createTestQueueUrl({ name: 'PostgreSQL' }, testDatabase.url),
      // An endpoint of the tests is as slow as the machine is busy, and some hold an answer back.
      DELIVERY_TIMEOUT_MS: '60000',
    };
    const receiver = await startReceiver();
    closers.push(() => receiver.close());
    const [people, management, dispatcher] = await Promise.all([
      seedPeople(database),
      startService('management', { ...environment, ...extraEnvironment }),
      startService('dispatcher', { ...environment, ...extraEnvironment }),
    ]);
    closers.push(() => Promise.all([management.stop(), dispatcher.stop()]));
    const call = callsOf(management.url, people);
    return {
      ...people,
      url: management.url,
      database,
      receiver,
      management,
      dispatcher,
      environment,
      call,
      run: (status = 'success') => reportRun(call, people, status),
      sessionOf: sessionsOf(management.url, people),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

function callsOf(url: string, { persons }: People): World['call'] {
  return async <Data>(person: PersonName, method: string, path: string, body?: object) => {
    const response = await fetch(`${url}/api${path}`, {
      method,
      headers: { authorization: `Token ${persons[person].apiKey}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const answer = (await response.json()) as { data: Data };
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(answer)}`);
    return answer.data;
  };
}

async function reportRun(call: World['call'], { accounts }: People, status: string): Promise<number> {
  const { id: accountId, jobs } = accounts.enterprise;
  const runs = `/v2/accounts/${accountId}/runs/`;
  const run = await call<{ id: number }>('ada', 'POST', runs, {
    job_id: jobs[0]?.id,
    engine_version: '1.9.2',
  });
  await call('ada', 'POST', `${runs}${run.id}/finish/`, {
    status,
    ...(status === 'errored' && { status_message: 'Model orders failed' }),
  });
  await call('ada', 'POST', `${runs}${run.id}/artifacts/`);
  return run.id;
}

function sessionsOf(url: string, { persons }: People): World['sessionOf'] {
  const kept = new Map<PersonName, string>();
  return async (person, { fresh = false } = {}) => {
    const known = kept.get(person);
    if (known !== undefined && !fresh) return known;
    const response = await fetch(`${url}/api/v3/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email: persons[person].email, password: PASSWORD }),
    });
    if (response.status !== 201) throw new Error(`signing in ${person} answered ${response.status}`);
    const cookie = response.headers.getSetCookie()[0]?.split(';')[0] ?? '';
    if (!fresh) kept.set(person, cookie);
    return cookie;
  };
}
