import { type Receiver, startReceiver } from '@runhook/testing';
import { PASSWORD, type People, type PersonName, seedPeople } from './people.ts';
import type { Services } from './services.ts';

/** Users, accounts and an endpoint. Several worlds may share services. */
export interface World extends People, Omit<Services, 'close'> {
  receiver: Receiver;
  /** Calls the API with the person's key. @param path below `/api`, with its slash: `/v3/profile` */
  call<Data>(person: PersonName, method: string, path: string, body?: object): Promise<Data>;
  /** Reports a run of the enterprise account's first job, from its start to its artifacts, and returns its id. */
  run(status?: 'success' | 'errored'): Promise<number>;
  /** Returns the session cookie of the person. All calls share one session, unless `fresh`. */
  sessionOf(person: PersonName, options?: { fresh?: boolean }): Promise<string>;
  close(): Promise<void>;
}

export async function openWorld(services: Services): Promise<World> {
  const { url, database, environment } = services;
  const people = await seedPeople(database);
  const call = createCaller(url, people);
  const receiver = await startReceiver();
  return {
    ...people,
    url,
    database,
    environment,
    receiver,
    call,
    run: (status = 'success') => reportRun(call, people, status),
    sessionOf: createSessions(url, people),
    close: () => receiver.close(),
  };
}

function createCaller(url: string, { persons }: People): World['call'] {
  return async <Data>(person: PersonName, method: string, path: string, body?: object) => {
    const response = await fetch(`${url}/api${path}`, {
      method,
      headers: { authorization: `Token ${persons[person].apiKey}`, 'content-type': 'application/json' },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const json = (await response.json()) as { data: Data };
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${JSON.stringify(json)}`);
    return json.data;
  };
}

const COLORS = [31, 32, 33, 34, 35, 36, 90].map((code) => `\x1b[${code}mcolour ${code}\x1b[0m`);
/** Steps of each run: one with both logs, and one without. */
const STEPS = [
  {
    index: 1,
    name: 'Invoke dbt with `dbt build`',
    status: 'Success',
    started_at: '2026-01-31T23:00:00Z',
    finished_at: '2026-01-31T23:01:34Z',
    logs: `Running with dbt\n${COLORS.join('\n')}\n<b>PASS</b> model \x1b[1morders\x1b[0m\n`,
    debug_logs: 'Connection opened\n',
  },
  { index: 2, name: 'Upload', status: 'Error' },
];

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
    run_steps: STEPS,
  });
  await call('ada', 'POST', `${runs}${run.id}/artifacts/`);
  return run.id;
}

function createSessions(url: string, { persons }: People): World['sessionOf'] {
  const sessions = new Map<PersonName, string>();
  return async (person, { fresh = false } = {}) => {
    const stored = sessions.get(person);
    if (stored !== undefined && !fresh) return stored;
    const response = await fetch(`${url}/api/v3/session`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ email: persons[person].email, password: PASSWORD }),
    });
    if (response.status !== 201) throw new Error(`the sign-in of ${person} returned ${response.status}`);
    const cookie = response.headers.getSetCookie()[0]?.split(';')[0] ?? '';
    if (!fresh) sessions.set(person, cookie);
    return cookie;
  };
}
