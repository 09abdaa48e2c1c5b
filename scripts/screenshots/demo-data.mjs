const HOUR_MS = 3_600_000;
const HOURS = 24;

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
    client_url: 'https://chat.example.com/hooks/T024/B061',
    event_types: ['job.run.completed'],
    perHour: 20,
    failing: () => 0,
    last: 200,
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
 * An account that has been in use for a day. Answers who signs in and what the pages are about. With the same `nowMs` and
 * a `createId` and a `seedSubscription` that do not draw lots, it is the same every time.
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
    const places = { projectName: 'Warehouse', environmentName: 'Production' };
    jobs.push(await databasePackage.createJob(prisma, { accountId: account.id, name, ...places }));
  }
  await pool.query(
    `SELECT ensure_day_partitions((now() AT TIME ZONE 'UTC')::date - 2, (now() AT TIME ZONE 'UTC')::date + 1)`,
  );
  const random = seededRandom(7);
  const webhooks = [];
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
      },
    });
    await seedLog({ pool, contract, account, jobs, webhook, subscriptionId: id, random, nowMs });
    webhooks[index] = id;
  }
  return { account, user, person, jobs, webhookIds: webhooks };
}

/** Deliveries of the last 24 hours with their events and last attempts, as the dispatcher leaves them. */
async function seedLog({ pool, contract, account, jobs, webhook, subscriptionId, random, nowMs }) {
  const startMs = nowMs - HOURS * HOUR_MS;
  for (let hour = 0; hour < HOURS; hour += 1) {
    const count = Math.round(webhook.perHour * (0.6 + random() * 0.8));
    for (let number = 0; number < count; number += 1) {
      const createdMs = Math.min(startMs + (hour + random()) * HOUR_MS, nowMs - 120_000);
      const isFailed = random() < webhook.failing(hour);
      const type = webhook.event_types[Math.floor(random() * webhook.event_types.length)];
      const durationMs = Math.round(
        (60 + 140 * random() ** 3) * (isFailed ? 12 : 1) + (hour % 8 === 3 ? 90 : 0),
      );
      const day = new Date(createdMs).toISOString().slice(0, 10);
      const created = new Date(createdMs);
      const id = contract.createId('delivery', createdMs);
      const eventId = contract.createId('event', createdMs);
      const job = jobs[Math.floor(random() * jobs.length)];
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
          40_000 + hour * 100 + number,
          webhook.name,
          isFailed ? 'failed' : 'delivered',
          isFailed ? 'All 6 attempts failed. Last: The endpoint answered 503.' : null,
          isFailed ? 6 : 1,
          isFailed ? 503 : 200,
          isFailed ? 'unsuccessful_status' : null,
          durationMs,
          created,
          new Date(createdMs + durationMs),
        ],
      );
    }
  }
}

/** The same picture every time. */
function seededRandom(seed) {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}
