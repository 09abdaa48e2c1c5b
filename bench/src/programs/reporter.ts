// A job runner that reports its runs over REST. Each call starts a run or ends one in error, so each call is one event.
import http from 'node:http';
import { createId, type JobRunEvent } from '@runhook/contract';
import { dueCount, evenSchedule, sharedNowMs } from '../measure/timing.ts';
import { serve } from './program.ts';
import type { ClosedLoop, OpenLoop, Reported, ReporterSettings, Runner } from './reports.ts';

const SOCKETS_MAX = 512;
const LEAD_MS = 100;

serve({
  async run({ callers, callsMax = Infinity, durationMs, ...settings }: ClosedLoop): Promise<Reported> {
    const reporting = new Reporting(settings, callers);
    const endMs = sharedNowMs() + durationMs;
    let nextCall = 0;
    async function callSequentially(): Promise<void> {
      while (sharedNowMs() < endMs && nextCall < callsMax) await reporting.report(nextCall++, sharedNowMs());
    }
    await Promise.all(Array.from({ length: callers }, callSequentially));
    return reporting.end();
  },
  async openLoop({ ratePerSecond, durationMs, ...settings }: OpenLoop): Promise<Reported> {
    const reporting = new Reporting(settings, SOCKETS_MAX);
    const schedule = evenSchedule(ratePerSecond, durationMs);
    const startMs = sharedNowMs() + LEAD_MS;
    const calls: Promise<void>[] = [];
    while (calls.length < schedule.length) {
      const due = dueCount(schedule, sharedNowMs() - startMs, calls.length);
      for (let index = calls.length; index < due; index += 1) {
        calls.push(reporting.report(index, startMs + (schedule[index] as number)));
      }
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await Promise.all(calls);
    return reporting.end();
  },
});

/** Run ids that no other process of the benchmark uses. */
let lastRunId = Date.now() * 1_000;

interface RunnerState extends Runner {
  accountUrl: string;
  /** Runs that have started. */
  running: number[];
}

class Reporting {
  readonly #agent: http.Agent;
  readonly #eventsPerCall: number | undefined;
  readonly #runners: RunnerState[];
  readonly #calls: string[] = [];
  readonly #intendedMs: number[] = [];
  readonly #respondedAtMs: number[] = [];
  readonly #startMs = sharedNowMs();
  #rejected = 0;

  constructor({ url, runners, eventsPerCall }: Omit<ReporterSettings, 'durationMs'>, sockets: number) {
    this.#eventsPerCall = eventsPerCall;
    this.#agent = new http.Agent({ keepAlive: true, maxSockets: sockets });
    this.#runners = runners.map((runner) => ({
      ...runner,
      accountUrl: `${url}/api/v2/accounts/${runner.accountId}`,
      running: [],
    }));
  }

  async report(nextCall: number, intendedMs: number): Promise<void> {
    const runner = this.#runners[nextCall % this.#runners.length] as RunnerState;
    const calls =
      this.#eventsPerCall === undefined
        ? await this.#reportRun(runner)
        : await this.#reportEvents(runner, this.#eventsPerCall);
    if (calls === null) {
      this.#rejected += this.#eventsPerCall ?? 1;
      return;
    }
    const respondedAtMs = sharedNowMs();
    for (const call of calls) {
      this.#calls.push(call);
      this.#intendedMs.push(intendedMs);
      this.#respondedAtMs.push(respondedAtMs);
    }
  }

  /** Ends a run that has started, or starts one. Resolves with the name of its event; null if the call is rejected. */
  async #reportRun({ accountId, accountUrl, token, jobId, running }: RunnerState): Promise<string[] | null> {
    const ended = running.shift();
    const runId = ended ?? ++lastRunId;
    const status =
      ended === undefined
        ? await this.#post(`${accountUrl}/runs/`, token, {
            job_id: jobId,
            run_id: runId,
            engine_version: '1.9.2',
            reason: 'Benchmark',
          })
        : await this.#post(`${accountUrl}/runs/${runId}/finish/`, token, {
            status: 'errored',
            status_message: 'The warehouse did not respond.',
          });
    if (status !== 200 && status !== 201) return null;
    if (ended === undefined) running.push(runId);
    const eventType = ended === undefined ? 'job.run.started' : 'job.run.errored';
    return [`${accountId} ${runId} ${eventType}`];
  }

  /** Reports events, each of another run. Resolves with null if the call is rejected. */
  async #reportEvents(
    { accountId, accountUrl, token, template }: RunnerState,
    count: number,
  ): Promise<string[] | null> {
    const events = Array.from({ length: count }, () => {
      const { data, ...identity } = template as JobRunEvent;
      return { ...identity, eventId: createId('event'), data: { ...data, runId: String(++lastRunId) } };
    });
    const status = await this.#post(`${accountUrl}/events/`, token, { events });
    return status === 202 ? events.map(({ data }) => `${accountId} ${data.runId} job.run.completed`) : null;
  }

  #post(url: string, token: string, fields: object): Promise<number> {
    const body = JSON.stringify(fields);
    const headers = {
      authorization: `Token ${token}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    };
    return new Promise((resolve, reject) => {
      const request = http.request(url, { method: 'POST', agent: this.#agent, headers }, (response) => {
        response.on('end', () => resolve(response.statusCode ?? 0)).resume();
      });
      request.on('error', reject).end(body);
    });
  }

  end(): Reported {
    this.#agent.destroy();
    return {
      calls: this.#calls.join('\n'),
      intendedMs: Float64Array.from(this.#intendedMs),
      respondedAtMs: Float64Array.from(this.#respondedAtMs),
      rejected: this.#rejected,
      seconds: (sharedNowMs() - this.#startMs) / 1_000,
    };
  }
}
