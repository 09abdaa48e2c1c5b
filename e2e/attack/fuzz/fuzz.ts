import { createSeededRandom, type SeededRandom } from '../../chaos/seeded-random.ts';
import type { Attack, AttackOptions, AttackReport } from '../attack.ts';
import { createSender, describeRequest, type FuzzResponse, findProblem } from './exchange.ts';
import { type Operation, readOperations } from './operations.ts';
import { createRequest, type FuzzRequest, type Target } from './requests.ts';
import { StatusTable } from './status-table.ts';
import { pick } from './values.ts';
import { type FuzzWorld, openFuzzWorld } from './world.ts';

const CONCURRENCY = 4;
/** Numbers of requests in a round: by the first account, then by the second account only. */
const ROUND = { anyAccount: 1_200, second: 600 };
const SMALL_ROUND = { anyAccount: 400, second: 200 };
const PROBLEMS_MAX = 20;

/**
 * Calls every route of the OpenAPI document with valid and invalid requests. No response may be a 5xx, and all must have the
 * envelope. The credentials of the second account must neither read nor change anything of the first account.
 */
export const fuzz: Attack = {
  name: 'fuzz',
  async run({ seed, endsAtMs, isSmall = false, log }: AttackOptions): Promise<AttackReport> {
    const world = await openFuzzWorld();
    const operations = await readOperations(world.management.url);
    const run = new FuzzRun(world, operations, createSeededRandom(seed), isSmall ? SMALL_ROUND : ROUND);
    let printed = 0;
    try {
      do {
        await run.anyAccount();
        await run.secondAccount();
        log(`fuzz: ${run.table.count} requests, ${run.problems.length} problems`);
        // Printed after each round, so that an interrupted run has printed its findings.
        for (const problem of run.problems.slice(printed)) log(problem);
        printed = run.problems.length;
      } while (endsAtMs !== null && Date.now() < endsAtMs && run.problems.length < PROBLEMS_MAX);
      return { table: run.table.render(), problems: run.problems };
    } finally {
      run.close();
      await world.system.close();
    }
  },
};

class FuzzRun {
  readonly table = new StatusTable();
  readonly problems: string[] = [];
  readonly #world: FuzzWorld;
  readonly #operations: Operation[];
  readonly #random: SeededRandom;
  readonly #round: typeof ROUND;
  readonly #sender: ReturnType<typeof createSender>;

  constructor(world: FuzzWorld, operations: Operation[], random: SeededRandom, round: typeof ROUND) {
    this.#world = world;
    this.#operations = operations;
    this.#random = random;
    this.#round = round;
    this.#sender = createSender(world.management.url, CONCURRENCY);
  }

  /** Uses the credentials of the first account, mostly on its own resources. */
  async anyAccount(): Promise<void> {
    const { first, second, settle } = this.#world;
    await settle();
    await this.#sendMany(this.#round.anyAccount, (operation) => {
      const target = { account: first, ids: this.#random.next() < 0.9 ? first : second };
      return createRequest(this.#random, operation, { caller: first, target });
    });
  }

  /** Calls each route at least once with a valid request, for the path of the first account and for its resources below the own path. */
  async secondAccount(): Promise<void> {
    const { first, second, readFirst } = this.#world;
    const targets: Target[] = [
      { account: first, ids: first },
      { account: second, ids: first },
    ];
    const before = await readFirst();
    if (before === '') this.#report('the first account has no rows');
    const createCertain = this.#operations.flatMap((operation) =>
      targets.map((target) => ({ operation, target })),
    );
    await this.#sendMany(
      createCertain.length + this.#round.second,
      (operation, index) => {
        const kind = createCertain[index] && ('valid' as const);
        const { target = pick(this.#random, targets) } = createCertain[index] ?? {};
        const original = createCertain[index]?.operation ?? operation;
        return createRequest(this.#random, original, { caller: second, target, ...(kind && { kind }) });
      },
      (request, response) => this.#checkResponse(request, response),
    );
    if ((await readFirst()) !== before) this.#report('the second account changed rows of the first');
  }

  #checkResponse(request: FuzzRequest, { status, body }: FuzzResponse): void {
    const { first } = this.#world;
    // An error response may repeat a key or an id only as the request contained it.
    const mark = first.marks.find((text) => body.includes(text) && !request.path.includes(text));
    if (mark !== undefined) this.#report(`shows "${mark}" of another account: ${describeRequest(request)}`);
    const leaksFirst = request.path.includes(`/accounts/${first.accountId}/`);
    if (leaksFirst && status < 400)
      this.#report(`returns ${status} to another account: ${describeRequest(request)}`);
  }

  async #sendMany(
    count: number,
    create: (operation: Operation, index: number) => FuzzRequest,
    onResponse: (request: FuzzRequest, response: FuzzResponse) => void = () => undefined,
  ): Promise<void> {
    let sent = 0;
    const sendAll = async () => {
      while (sent < count && this.problems.length < PROBLEMS_MAX) {
        const operation = this.#operations[sent % this.#operations.length] as Operation;
        const request = create(operation, sent++);
        const response = await this.#sender.send(request);
        this.table.add(request.operation, response?.status ?? null);
        const problem = findProblem(request, response);
        if (problem)
          this.#report(`${problem}: ${describeRequest(request)} ${response?.body.slice(0, 300) ?? ''}`);
        if (response) {
          noteChange(request, response);
          onResponse(request, response);
        }
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, sendAll));
  }

  #report(problem: string): void {
    this.problems.push(problem);
  }

  close(): void {
    this.#sender.close();
  }
}

/** Stores the results that the next valid requests need: a replaced key, and webhooks and jobs that may be deleted. */
function noteChange(
  { operation, method, caller, target }: FuzzRequest,
  { status, body }: FuzzResponse,
): void {
  if (method !== 'POST' || (status !== 200 && status !== 201)) return;
  const { data } = JSON.parse(body) as { data: { api_key?: string; id?: string | number } | null };
  if (data === null) return;
  if (data.api_key !== undefined) caller.apiKey = data.api_key;
  if (caller.accountId !== target.account.accountId) return;
  if (operation.path.endsWith('/subscriptions')) caller.spareWebhookIds.push(String(data.id));
  if (operation.path.endsWith('/jobs')) caller.spareJobIds.push(String(data.id));
}
