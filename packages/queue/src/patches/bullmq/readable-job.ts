import { Job, type JobProgress, Queue, Worker } from 'bullmq';

/** Parses the data of a job. Redis stores any bytes: data that is not JSON is returned as text, an invalid message. */
export function parseData(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/**
 * A job whose data may not be JSON. BullMQ's class throws for it: the page of jobs that contains it cannot be read, and
 * a worker that takes it leaves it active until it stalls, repeatedly.
 */
class ReadableJob<Data, Result, Name extends string, Progress extends JobProgress> extends Job<
  Data,
  Result,
  Name,
  Progress
> {
  static override fromJSON: typeof Job.fromJSON = (queue, json, jobId) => {
    try {
      return Job.fromJSON(queue, json, jobId);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error;
      return Job.fromJSON(queue, { ...json, data: JSON.stringify(json.data) }, jobId);
    }
  };
}

/** A queue that can read jobs whose data is not JSON. */
export class ReadableQueue<Data> extends Queue<Data> {
  protected override get Job() {
    return ReadableJob;
  }
}

/** A worker that can read jobs whose data is not JSON. */
export class ReadableWorker<Data> extends Worker<Data> {
  protected override get Job() {
    return ReadableJob;
  }
}
