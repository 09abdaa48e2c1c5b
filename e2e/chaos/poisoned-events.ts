import type { JobRunEvent } from '@runhook/contract';
import { exampleEvent, type TestAccount } from '@runhook/testing';
import { type OddJson, TEXTS } from './poison-texts.ts';

/** Events of an account, each of another run, that have texts and JSON that stores reject. */
export class PoisonedEvents {
  readonly accountId: number;
  readonly job: TestAccount['jobs'][number];
  #runs = 0;

  constructor({ id, jobs }: TestAccount) {
    this.accountId = id;
    this.job = jobs[0] as TestAccount['jobs'][number];
  }

  next(): { runId: number; event: JobRunEvent } {
    this.#runs += 1;
    return { runId: this.#runs, event: exampleEvent('job.run.errored', this.job, this.#runs) };
  }

  /** Returns an event for each text, with the text in all fields that permit it. */
  withTexts(): JobRunEvent[] {
    return TEXTS.map((text) => {
      const { event } = this.next();
      const short = text.slice(0, 1_000);
      const names = { jobName: short, environmentName: short, engineVersion: short, projectName: short };
      const data = { ...event.data, ...names, runStatus: short, runReason: text, runStatusMessage: text };
      return { ...event, data } as JobRunEvent;
    });
  }

  /** Returns the JSON of an event, which no library writes. */
  withOddJson({ code = '20', more = '' }: OddJson): string {
    const json = JSON.stringify(this.next().event);
    return `${json.replace(/"runStatusCode":\d+/, `"runStatusCode":${code}`).slice(0, -1)}${more}}`;
  }
}
