import { readFileSync } from 'node:fs';
import {
  createHmacSecret,
  createId,
  EVENT_TYPES,
  type EventType,
  renderPayload,
  SIGNATURE_HEADER,
  sampleEvent,
} from '@runhook/contract';
import { checkSignature, verdictWords } from '@runhook/contract/check-signature';
import {
  CliError,
  type Command,
  type Context,
  choice,
  option,
  reads,
  repeatable,
  UsageError,
} from './command.ts';
import { secretOption, timeoutOption } from './listen.ts';
import { isGood, type Posted, post, postedJson, postedWords } from './post.ts';

interface SendOptions {
  to: string;
  type?: EventType;
  file?: string;
  secret?: string;
  signatureHeader?: string;
  timeout: number;
}

/** Sends a delivery without a service, to try out a receiver. */
export const sendCommand: Command<SendOptions> = {
  name: 'send',
  summary: 'a signed sample of each event, or a file, to a URL',
  description:
    'Sends what Runhook would send, signed: a sample of every type of event, of one with --type, or the exact bytes of a file. Needs no service and no token. Ends with 1 unless every answer was a 2xx.',
  options: [
    option('--to <url>', 'the endpoint', reads.httpUrl).makeOptionMandatory(),
    choice('--type <type>', 'of this type of event only', EVENT_TYPES),
    option('--file <file>', 'the body: a file, or - for standard input'),
    secretOption(),
    option('--signature-header <name>', `the header of the signature (default: ${SIGNATURE_HEADER})`),
    timeoutOption(),
  ],
  examples: [
    'send --to http://localhost:8080/hook',
    'send --to http://localhost:8080/hook --file body.json --secret whsec_…',
  ],
  async run(context, options) {
    if (options.file !== undefined && options.type !== undefined)
      throw new UsageError('--type and --file cannot be given both.');
    const secret = options.secret ?? createHmacSecret();
    if (options.secret === undefined) await context.remark(`signed with  ${secret}`);
    const bodies =
      options.file === undefined ? samples(options.type) : [await fromFile(context, options.file)];
    let areAllGood = true;
    for (const { name, body, eventId } of bodies) {
      const signed = { body, eventId, secret, signatureHeader: options.signatureHeader ?? null };
      const posted: Posted = await post(options.to, signed, 1_000 * options.timeout);
      areAllGood = isGood(posted) && areAllGood;
      const json = { sent: name, event_id: eventId, secret, ...postedJson(posted) };
      await context.line(`${name.padEnd(NAME_WIDTH)}  ${postedWords(posted)}`, json);
    }
    return areAllGood ? 0 : 1;
  },
};

const NAME_WIDTH = 'job.run.completed'.length;

interface Sent {
  name: string;
  body: string | Buffer;
  eventId: string;
}

function samples(only: EventType | undefined): Sent[] {
  const now = new Date();
  const webhook = { id: createId('subscription', now.getTime()), name: 'A sample' };
  return (only === undefined ? EVENT_TYPES : [only]).map((type) => {
    const eventId = createId('event', now.getTime());
    return {
      name: type,
      body: renderPayload(sampleEvent(type, { accountId: 1, eventId, now }), webhook),
      eventId,
    };
  });
}

async function fromFile(context: Context, file: string): Promise<Sent> {
  const body = await bytesOf(context, file);
  let eventId: unknown;
  try {
    eventId = JSON.parse(body.toString()).eventId;
  } catch {
    // A body that is not JSON gets a new id.
  }
  return { name: file, body, eventId: typeof eventId === 'string' ? eventId : createId('event', Date.now()) };
}

async function bytesOf({ stdin }: Context, file: string): Promise<Buffer> {
  if (file !== '-') return readFileSync(file);
  const chunks: Buffer[] = [];
  for await (const chunk of stdin) chunks.push(Buffer.from(chunk));
  return Buffer.concat(chunks);
}

interface VerifyOptions {
  header: string[];
  secret?: string;
  signatureHeader: string;
}

export const verifyCommand: Command<VerifyOptions> = {
  name: 'verify',
  summary: 'whether a signature is right, and else which byte differs',
  description:
    'Checks the signature of a body, as your endpoint got both. When it is wrong, tries what happens to bodies, headers and secrets on their way, and says what it was and which byte differs. Nothing is sent. Ends with 1 when the signature is not right.',
  arguments: [['[body]', 'a file with the exact bytes; standard input when left out, or -']],
  options: [
    repeatable(
      '--header <header>',
      'the value of the signature, or headers as “name: value”; may be repeated',
      String,
    ),
    option(
      '--secret <secret>',
      'what your endpoint verifies with; else RUNHOOK_SECRET, which shows in no list of processes',
    ),
    option('--signature-header <name>', 'the header of the signature').default(SIGNATURE_HEADER),
  ],
  examples: [
    'verify body.json --header 163c36065a0f… --secret whsec_…',
    'verify < body.json --header "webhook-signature: v1,…" --header "webhook-timestamp: 1795168800" --header "webhook-id: wev_…"',
  ],
  async run(context, { header = [], secret = context.env.RUNHOOK_SECRET, signatureHeader }, [file = '-']) {
    if (header.length === 0) throw new UsageError('--header must be given.');
    if (!secret) throw new UsageError('The secret is missing: --secret, or RUNHOOK_SECRET.');
    const body = textOf(await bytesOf(context, file));
    const verdict = await checkSignature({ body, header: header.join('\n'), secret, signatureHeader });
    const { title, lines } = verdictWords(verdict, null);
    if (verdict.kind === 'unreadable') throw new UsageError(lines.join(' '));
    await context.answer([`${title}.`, ...lines.map((line) => `  ${line}`)].join('\n'), {
      ...verdict,
      title,
      lines,
    });
    return verdict.kind === 'genuine' ? 0 : 1;
  },
};

/** Decodes the body and retains a byte order mark, because the signature would cover it. */
function textOf(bytes: Buffer): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new CliError(
      'not_utf8',
      `The body is not as it was sent: it is no UTF-8 from byte ${firstBad(bytes)} on.`,
    );
  }
}

function firstBad(bytes: Buffer): number {
  const again = Buffer.from(new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes));
  return again.findIndex((byte, index) => byte !== bytes[index]);
}
