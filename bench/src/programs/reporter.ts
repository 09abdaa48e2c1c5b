// A job runner that reports its runs over REST, by so many callers at a time.
import http from 'node:http';
import { serve } from './program.ts';

export interface ReporterSettings {
  /** Of the account's runs. */
  url: string;
  token: string;
  jobId: number;
  callers: number;
}

export interface Reported {
  accepted: number;
  refused: number;
  seconds: number;
  latenciesMs: Float64Array;
}

serve({
  async run({
    url,
    token,
    jobId,
    callers,
    durationMs,
  }: ReporterSettings & { durationMs: number }): Promise<Reported> {
    const agent = new http.Agent({ keepAlive: true, maxSockets: callers });
    const body = JSON.stringify({ job_id: jobId, engine_version: '1.9.2', reason: 'Benchmark' });
    const headers = {
      authorization: `Token ${token}`,
      'content-type': 'application/json',
      'content-length': Buffer.byteLength(body),
    };
    const latenciesMs: number[] = [];
    let refused = 0;
    const startMs = performance.now();
    const endMs = startMs + durationMs;

    const report = () =>
      new Promise<number>((resolve, reject) => {
        const request = http.request(url, { method: 'POST', agent, headers }, (response) => {
          response.on('end', () => resolve(response.statusCode ?? 0)).resume();
        });
        request.on('error', reject).end(body);
      });

    async function callInTurn(): Promise<void> {
      while (performance.now() < endMs) {
        const beganMs = performance.now();
        if ((await report()) === 201) latenciesMs.push(performance.now() - beganMs);
        else refused += 1;
      }
    }

    await Promise.all(Array.from({ length: callers }, callInTurn));
    agent.destroy();
    const seconds = (performance.now() - startMs) / 1_000;
    return { accepted: latenciesMs.length, refused, seconds, latenciesMs: Float64Array.from(latenciesMs) };
  },
});
