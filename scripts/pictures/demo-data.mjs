const HOUR_MS = 3_600_000;
const HOURS = 24;
/** Time for which one webhook has been failing. */
const BROKEN_HOURS = 3;

const WEBHOOKS = [
  {
    name: 'On-call pager',
    description: 'Wakes whoever is on call when a run fails. Looked after by the platform team.',
    path: '/pager',
    event_types: ['job.run.started', 'job.run.completed', 'job.run.errored'],
    perHour: 34,
    failing: (hour) => (hour === 9 || hour === 10 ? 0.4 : 0.02),
  },
  {
    name: 'Catalogue refresh',
    description: 'Rebuilds the data catalogue after each load.',
    client_url: 'https://catalogue.example.com/hooks/runhook',
    event_types: ['job.run.completed'],
    jobs: [0],
    perHour: 12,
    failing: () => 0,
    last: 204,
  },
  {
    name: 'Finance report mailer',
    description: '',
    client_url: 'https://reports.example.com/finance/mail',
    event_types: ['job.run.completed'],
    jobs: [1, 2],
    perHour: 2,
    failing: () => 0.5,
    last: 504,
  },
  {
    name: 'Chat: #data-runs',
    description: 'A line in the channel for each run.',
    client_url: 'https://hooks.slack.com/services/T024/B061/demo',
    event_types: ['job.run.completed'],
    perHour: 20,
    failing: (hour) => (hour >= HOURS - BROKEN_HOURS ? 1 : 0),
    last: 400,
    broken: { status: 400, body: 'no_text' },
  },
  {
    name: 'Old warehouse sync',
    description: 'Replaced by the catalogue; kept until the end of the quarter.',
    client_url: 'https://sync.example.net/v1/events',
    event_types: ['job.run.completed', 'job.run.errored'],
    jobs: [0, 1, 2, 3],
    active: false,
    perHour: 1,
    failing: () => 1,
    last: 410,
  },
  {
    name: 'Quality checks',
    description: '',
    client_url: 'https://quality.example.com/webhooks',
    event_types: ['job.run.errored'],
    perHour: 0,
    failing: () => 0,
  },
];
const JOBS = ['Nightly build', 'Hourly load', 'Finance marts', 'Marketing attribution'];

/**
 * Creates an account that has been in use for a day. Returns its users, jobs and webhooks. The data are reproducible if `nowMs`,
 * `createId` and `seedSubscription` are deterministic.
 */
export async function seedDemoData({
  database,
  contract,
  testing,
  databasePackage,
  receiverUrl,
  nowMs = Date.now(),
}) {
  const { prisma, pool } = database;
  const account = await databasePackage.createAccount(prisma, {
    name: 'Northwind Analytics',
    plan: 'enterprise',
    deployment: 'multi_tenant',
  });
  const person = { email: 'ada@northwind.example', name: 'Ada Lovelace', password: 'screenshots only' };
  const user = await databasePackage.createUser(prisma, testing.testSecrets, person);
  await databasePackage.addMembership(prisma, {
    accountId: account.id,
    userId: user.id,
    license: 'developer',
    permissionSets: ['account_admin'],
  });
  const jobs = [];
  for (const name of JOBS) {
    const projectAndEnvironment = { projectName: 'Warehouse', environmentName: 'Production' };
    jobs.push(
      await databasePackage.createJob(prisma, { accountId: account.id, name, ...projectAndEnvironment }),
    );
  }
  await pool.query(
    `SELECT ensure_day_partitions((now() AT TIME ZONE 'UTC')::date - 2, (now() AT TIME ZONE 'UTC')::date + 1)`,
  );
  const random = seededRandom(7);
  const webhooks = [];
  const eventsByKey = new Map();
  for (const [index, webhook] of [...WEBHOOKS.entries()].reverse()) {
    const { id } = await testing.seedSubscription(database, {
      accountId: account.id,
      name: webhook.name,
      clientUrl: webhook.client_url ?? `${receiverUrl}${webhook.path}`,
      eventTypes: webhook.event_types,
      jobIds: (webhook.jobs ?? []).map((job) => jobs[job].id),
      active: webhook.active ?? true,
    });
    await prisma.subscription.update({
      where: { id },
      data: {
        description: webhook.description,
        createdAt: new Date(nowMs - (20 + index) * 24 * HOUR_MS),
        ...(webhook.last && {
          httpStatusCode: webhook.last,
          errorCode: webhook.last < 300 ? null : webhook.last === 504 ? 'timeout' : 'unsuccessful_status',
          dispatchedAt: new Date(nowMs - (3 + index * 11) * 60_000),
        }),
        ...(webhook.broken && {
          failingSince: new Date(nowMs - BROKEN_HOURS * HOUR_MS),
          lastSuccessAt: new Date(nowMs - BROKEN_HOURS * HOUR_MS - 100_000),
          consecutiveFailures: 6 * BROKEN_HOURS * webhook.perHour,
        }),
      },
    });
    await seedLog({ pool, contract, account, jobs, webhook, subscriptionId: id, random, nowMs, eventsByKey });
    webhooks[index] = id;
  }
  await seedRuns({ pool, account, jobs, nowMs });
  return { account, user, person, jobs, webhookIds: webhooks };
}

/**
 * Inserts deliveries of the last 24 hours with their events and last attempts, as the dispatcher stores them.
 * @param options.eventsByKey the events inserted so far, because several webhooks receive events of the same run
 */
async function seedLog({
  pool,
  contract,
  account,
  jobs,
  webhook,
  subscriptionId,
  random,
  nowMs,
  eventsByKey,
}) {
  const startMs = nowMs - HOURS * HOUR_MS;
  for (let hour = 0; hour < HOURS; hour += 1) {
    const count = Math.round(webhook.perHour * (0.6 + random() * 0.8));
    for (let number = 0; number < count; number += 1) {
      const drawnMs = Math.min(startMs + (hour + random()) * HOUR_MS, nowMs - 120_000);
      const isFailed = random() < webhook.failing(hour);
      const type = webhook.event_types[Math.floor(random() * webhook.event_types.length)];
      const durationMs = Math.round(
        (60 + 140 * random() ** 3) * (isFailed ? 12 : 1) + (hour % 8 === 3 ? 90 : 0),
      );
      const runId = 40_000 + hour * 100 + number;
      const status = webhook.broken?.status ?? 503;
      const event = eventsByKey.get(`${runId} ${type}`) ?? {
        id: contract.createId('event', drawnMs),
        createdMs: drawnMs,
        job: jobs[Math.floor(random() * jobs.length)],
        isNew: true,
      };
      const { id: eventId, createdMs, job, isNew } = event;
      eventsByKey.set(`${runId} ${type}`, { ...event, isNew: false });
      const day = new Date(createdMs).toISOString().slice(0, 10);
      const created = new Date(createdMs);
      const id = contract.createId('delivery', createdMs);
      if (isNew)
        await pool.query(
          `INSERT INTO events (day, id, account_id, event_type, "timestamp", data, created_at)
           VALUES ($1, $2, $3, $4, $5, $6, $7)`,
          [
            day,
            eventId,
            account.id,
            type,
            created.toISOString(),
            JSON.stringify({ jobName: job.name }),
            created,
          ],
        );
      await pool.query(
        `INSERT INTO deliveries (day, id, account_id, subscription_id, event_id, event_type, job_id, run_id,
           webhook_name, status, reason, attempt_count, http_status_code, error_code, duration_ms, created_at,
           completed_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)`,
        [
          day,
          id,
          account.id,
          subscriptionId,
          eventId,
          type,
          job.id,
          runId,
          webhook.name,
          isFailed ? 'failed' : 'delivered',
          isFailed ? `All 6 attempts failed. Last: The endpoint responded with ${status}.` : null,
          isFailed ? 6 : 1,
          isFailed ? status : 200,
          isFailed ? 'unsuccessful_status' : null,
          durationMs,
          created,
          new Date(createdMs + durationMs),
        ],
      );
      if (isFailed && webhook.broken)
        await pool.query(
          `INSERT INTO attempts (day, account_id, delivery_id, number, trigger, started_at, duration_ms, http_status_code, error_code,
             error_message, request_headers, response_headers, response_body, response_truncated)
           VALUES ($1, $2, $3, 6, 'automatic', $4, $5, $6, 'unsuccessful_status', $7, '{}', '{}', $8, false)`,
          [
            day,
            account.id,
            id,
            created,
            durationMs,
            status,
            `The endpoint responded with ${status}.`,
            webhook.broken.body,
          ],
        );
    }
  }
}

const RUNS_PER_HOUR = 12;

/** Inserts runs, some of which have deliveries. */
async function seedRuns({ pool, account, jobs, nowMs }) {
  for (let hour = 0; hour < HOURS; hour += 1)
    for (let number = 0; number < RUNS_PER_HOUR; number += 1) {
      const startedMs = nowMs - (HOURS - hour) * HOUR_MS + (number * HOUR_MS) / RUNS_PER_HOUR;
      const started = new Date(startedMs - (startedMs % 1_000));
      const finished = new Date(started.getTime() + (40 + number * 17) * 1_000);
      const isErrored = (hour * RUNS_PER_HOUR + number) % 23 === 0;
      const isRunning = finished.getTime() > nowMs;
      const job = jobs[number % jobs.length];
      await pool.query(
        `INSERT INTO runs (account_id, id, job_id, job_name, project_id, project_name, environment_id, environment_name,
           engine_version, status, status_message, reason, started_at, finished_at, errored_at, artifacts_ingested_at,
           created_at)
         SELECT j.account_id, $1, j.id, j.name, p.id, p.name, e.id, e.name, '1.9.2', $2, $3, 'Scheduled', $4, $5, $6, $5, $4
         FROM jobs j JOIN projects p ON p.id = j.project_id JOIN environments e ON e.id = j.environment_id
         WHERE j.account_id = $7 AND j.id = $8`,
        [
          40_000 + hour * 100 + number,
          isRunning ? 'Running' : isErrored ? 'Errored' : 'Success',
          isErrored && !isRunning ? 'Model orders failed' : null,
          started,
          isRunning ? null : finished,
          isErrored && !isRunning ? finished : null,
          account.id,
          job.id,
        ],
      );
    }
}

/** Returns a deterministic generator, so that the pictures are reproducible. */
function seededRandom(seed) {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}
