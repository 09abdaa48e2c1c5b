import { randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { link, readFile, realpath, rename, rm, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { printable } from '@runhook/runtime/terminal-text';
import { CliError, type Command, type CommandGroup, option, parsers, UsageError } from './command.ts';
import { type ConnectionOptions, connect, connectionOptions } from './connection.ts';
import { runId as parseRun, RUN_ARGUMENT, RUNS_PATH } from './references.ts';

const ARTIFACTS_PATH = `${RUNS_PATH}/{run_id}/artifacts` as const;

interface StepOptions extends ConnectionOptions {
  step?: number;
}

interface UploadOptions extends StepOptions {
  path?: string;
}

interface DownloadOptions extends StepOptions {
  output?: string;
}

const stepOption = (description: string) => option('--step <n>', description, parsers.integer(1, 1_000));

const list: Command<StepOptions> = {
  name: 'list',
  summary: 'list the files of a run',
  description: 'Lists the paths of the files of a run.',
  arguments: [RUN_ARGUMENT],
  options: [stepOption('only files of this step'), ...connectionOptions()],
  examples: ['artifacts list 2482'],
  async run(context, { step, ...connection }, [run = '']) {
    const client = await connect(context.env, connection);
    const path = { run_id: parseRun(run) };
    const paths = await client.get(ARTIFACTS_PATH, { path, query: { ...(step !== undefined && { step }) } });
    await context.writeResult(paths.map(printable).join('\n'), paths);
    return 0;
  },
};

const upload: Command<UploadOptions> = {
  name: 'upload',
  summary: 'upload files of a run',
  description:
    'Uploads files of a run under their names, in place of files of the same paths. The run must have started.',
  arguments: [RUN_ARGUMENT, ['<files...>', 'files of up to 64 MiB']],
  options: [
    option('--path <path>', 'path of the file in the run, for a single file (default: its name)'),
    stepOption('number of the step that wrote the files'),
    ...connectionOptions(),
  ],
  examples: ['artifacts upload 2482 target/manifest.json target/run_results.json'],
  async run(context, { path, step, ...connection }, [run = '', ...files]) {
    const runId = parseRun(run);
    if (path !== undefined && files.length > 1) throw new UsageError('--path needs a single file.');
    const client = await connect(context.env, connection);
    for (const file of files) {
      const content = await readFile(file);
      const stored = await client.putArtifact({ runId, path: path ?? basename(file), step, content });
      await context.writeRow(`${printable(stored.path)}  ${stored.bytes} bytes`, stored);
    }
    return 0;
  },
};

const download: Command<DownloadOptions> = {
  name: 'download',
  summary: 'download a file of a run',
  description: 'Downloads a file of a run to a file of the same name; an existing file is not replaced.',
  arguments: [RUN_ARGUMENT, ['<path>', 'path of the file']],
  options: [
    option('--output <file>', 'file to write, which is replaced (default: a new one of the same name)'),
    stepOption('the file of this step (default: the one that was uploaded last)'),
    ...connectionOptions(),
  ],
  examples: ['artifacts download 2482 run_results.json'],
  async run(context, { output, step, ...connection }, [run = '', path = '']) {
    const client = await connect(context.env, connection);
    const { body } = await client.getArtifact({ runId: parseRun(run), path, step });
    if (body === null) throw new CliError('no_response', 'The response has no content.');
    const target = output ?? basename(path);
    // The server names no file: the path of the caller does, and nothing is replaced unnoticed.
    await writeComplete(() => Readable.fromWeb(body as never), target, { isReplaced: output !== undefined });
    await context.writeResult(`written to ${printable(target)}`, { file: target });
    return 0;
  },
};

/**
 * Writes a file under another name in its folder until it is complete, so that an interrupted download leaves nothing. A
 * target that is no regular file, such as a pipe, is written at once.
 * @param open called immediately before the content is read: an error of a stream without a reader would end the process
 * @param isReplaced whether the file may exist
 */
async function writeComplete(
  open: () => Readable,
  target: string,
  { isReplaced }: { isReplaced: boolean },
): Promise<void> {
  const existing = isReplaced ? await stat(target).catch(() => null) : null;
  if (existing?.isFile() === false) return await pipeline(open(), createWriteStream(target));
  const file = existing === null ? target : await realpath(target);
  const part = `${file}.${randomUUID()}.part`;
  try {
    await pipeline(open(), createWriteStream(part, { flags: 'wx' }));
    // Unlike a rename, a link fails if the file exists.
    await (isReplaced ? rename(part, file) : link(part, file));
  } finally {
    await rm(part, { force: true });
  }
}

export const artifactsGroup: CommandGroup = {
  name: 'artifacts',
  summary: 'list, upload, download',
  commands: [list, upload, download] as Command[],
};
