// A job runner that reports its runs over REST. Each call starts a run or ends one in error, so each is one event.
import http from 'node:http';
import { dueCount, evenSchedule, sharedNowMs } from '../measure/timing.ts';
import { serve } from './program.ts';
import type { ClosedLoop, OpenLoop, Reported, ReporterSettings, Runner } from './reports.ts';

const SOCKETS_MAX = 512;
const LEAD_MS = 100;

serve({
  async run({ callers, durationMs, ...settings }: ClosedLoop): Promise<Reported> {
    const reporting = new Reporting(settings, callers);
    const endMs = sharedNowMs() + durationMs;
    let turn = 0;
    async function callInTurn(): Promise<void> {
      while (sharedNowMs() < endMs) await reporting.report(turn++, sharedNowMs());
    }
    await Promise.all(Array.from({ length: callers }, callInTurn));
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

/** Numbers of runs that no other process of the benchmark has. */
let lastRunId = Date.now() * 1_000;

interface RunnerAtWork extends Runner {
  runsUrl: string;
  /** Runs that have begun. */
  running: number[];
}

class Reporting {
  readonly #agent: http.Agent;
  readonly #runners: RunnerAtWork[];
  readonly #calls: string[] = [];
  readonly #intendedMs: number[] = [];
  readonly #answeredMs: number[] = [];
  readonly #startMs = sharedNowMs();
  #refused = 0;

  constructor({ url, runners }: Omit<ReporterSettings, 'durationMs'>, sockets: number) {
    this.#agent = new http.Agent({ keepAlive: true, maxSockets: sockets });
    this.#runners = runners.map((runner) => ({
      ...runner,
      runsUrl: `${url}/api/v2/accounts/${runner.accountId}/runs/`,
      running: [],
    }));
  }

  /** Ends a run that has begun, or begins one. */
  async report(turn: number, intendedMs: number): Promise<void> {
    const runner = this.#runners[turn % this.#runners.length] as RunnerAtWork;
    const { accountId, runsUrl, token, jobId, running } = runner;
    const ended = running.shift();
    const runId = ended ?? ++lastRunId;
    const status =
      ended === undefined
        ? await this.#post(runsUrl, token, {
            job_id: jobId,
            run_id: runId,
            engine_version: '1.9.2',
            reason: 'Benchmark',
          })
        : await this.#post(`${runsUrl}${runId}/finish/`, token, {
            status: 'errored',
            status_message: 'The warehouse did not answer.',
          });
    if (status !== 200 && status !== 201) {
      this.#refused += 1;
      return;
    }
    if (ended === undefined) running.push(runId);
    const eventType = ended === undefined ? 'job.run.started' : 'job.run.errored';
    this.#calls.push(`${accountId} ${runId} ${eventType}`);
    this.#intendedMs.push(intendedMs);
    this.#answeredMs.push(sharedNowMs());
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
      answeredMs: Float64Array.from(this.#answeredMs),
      refused: this.#refused,
      seconds: (sharedNowMs() - this.#startMs) / 1_000,
    };
  }
}
