import { queueBackends, seedAccount } from '@runhook/testing';
import { callApi, openSystem } from '../observability/system.ts';
import type { Attack } from './attack.ts';

const RUNS = 1_000;
const RUNS_SMALL = 100;
/** Largest run id that a runner may supply. */
const RUN_ID_MAX = Number.MAX_SAFE_INTEGER;

/**
 * Starts runs of two accounts through two processes of management, after one account has supplied the largest id. No id
 * of an account may repeat, and the ids of one account must not show how many runs the other one has.
 */
export const runIds: Attack = {
  name: 'run ids',
  async run({ isSmall = false }) {
    const backend = queueBackends().at(-1);
    if (!backend) throw new Error('there is no queue back end');
    const system = await openSystem(backend);
    try {
      const processes = [await system.start('management'), await system.start('management')];
      const { id, jobs } = await seedAccount(system.database);
      const quiet = { id, jobs, token: (await system.newToken(id)).token };
      const busy = { ...system.account, token: system.token };
      const start = async ({ id, jobs, token }: typeof quiet, index: number, run_id?: number) => {
        const management = processes[index % 2];
        if (management === undefined) throw new Error('there is no process');
        const body = { job_id: jobs[0]?.id, engine_version: '1.9', ...(run_id !== undefined && { run_id }) };
        const request = { method: 'POST', path: `/v2/accounts/${id}/runs/`, body };
        return Number((await callApi({ token }, management, request)).data?.id);
      };
      await start(busy, 0, RUN_ID_MAX);
      const count = isSmall ? RUNS_SMALL : RUNS;
      const ids = await Promise.all(Array.from({ length: count }, (_, index) => start(busy, index)));
      const quietIds = [await start(quiet, 0), await start(quiet, 1)];
      const problems: string[] = [];
      if (new Set(ids).size < count) problems.push(`${count - new Set(ids).size} ids repeat`);
      if (ids.some((id) => !(id > 0 && id < RUN_ID_MAX / 2))) problems.push(`an id is ${Math.max(...ids)}`);
      if (quietIds.some((id) => !(id > 0 && id < 10))) problems.push(`the other account has ids ${quietIds}`);
      const table = `| runs | different ids | largest id | ids of the other account |\n|---|---|---|---|\n| ${count} | ${new Set(ids).size} | ${Math.max(...ids)} | ${quietIds} |`;
      return { table, problems };
    } finally {
      await system.close();
    }
  },
};
