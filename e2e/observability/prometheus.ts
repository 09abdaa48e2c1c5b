import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from '@runhook/embedded';
import { eventually } from '@runhook/testing';

export interface Series {
  metric: Record<string, string>;
  /** NaN if there is no value, as for a quantile without observations. */
  value: number;
}

/** Runs a separate Prometheus on loopback, with its data in a temporary folder. */
export interface Prometheus {
  /** Resolves with the current value of an expression. Rejects with the error message of Prometheus. */
  query(expression: string): Promise<Series[]>;
  close(): Promise<void>;
}

export function hasProgram(name: 'prometheus' | 'promtool'): boolean {
  return spawnSync(name, ['--version'], { stdio: 'ignore' }).error === undefined;
}

/** @param targets `host:port` by job */
export async function startPrometheus(targets: Record<string, string>): Promise<Prometheus> {
  const folder = await mkdtemp(join(tmpdir(), 'runhook-prometheus-'));
  const jobs = Object.entries(targets).map(
    ([job, target]) => `  - job_name: ${job}\n    static_configs: [{ targets: ['${target}'] }]`,
  );
  const config = `global: { scrape_interval: 1s, scrape_timeout: 1s }\nscrape_configs:\n${jobs.join('\n')}\n`;
  await writeFile(join(folder, 'prometheus.yml'), config);
  const { port } = await findFreePort();
  const address = `127.0.0.1:${port}`;
  const child = spawn(
    'prometheus',
    [
      `--config.file=${join(folder, 'prometheus.yml')}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=${address}`,
      '--log.level=error',
    ],
    { stdio: ['ignore', 'ignore', 'inherit'] },
  );
  const exited = once(child, 'exit');
  const prometheus: Prometheus = {
    async query(expression) {
      const url = `http://${address}/api/v1/query?${new URLSearchParams({ query: expression })}`;
      const result = (await (await fetch(url)).json()) as {
        status: string;
        error?: string;
        data: { result: { metric: Record<string, string>; value: [number, string] }[] };
      };
      if (result.status !== 'success') throw new Error(`${result.error}: ${expression}`);
      return result.data.result.map(({ metric, value }) => ({ metric, value: Number(value[1]) }));
    },
    async close() {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
      await exited;
      await rm(folder, { recursive: true, force: true });
    },
  };
  try {
    await eventually(
      async () => {
        const { ok } = await fetch(`http://${address}/-/ready`);
        if (!ok) throw new Error('Prometheus is not ready');
      },
      { intervalMs: 100 },
    );
    return prometheus;
  } catch (error) {
    await prometheus.close();
    throw error;
  }
}
