import {
  type DeliveryHeaders,
  type JobRunEvent,
  PARSED,
  RefusedDelivery,
  secretsOf,
  type VerifyOptions,
  verify,
} from './verify.ts';

export interface HandlerOptions extends VerifyOptions {
  /** Told of each request that was refused; it is answered all the same. */
  onRefused?: (error: RefusedDelivery) => void;
  /** Larger bodies are refused; 1 MiB when omitted, which no delivery reaches. */
  bytesMax?: number;
}

/**
 * Called with each genuine event. Once it has ended, or what it returns is resolved, the delivery is answered 204. Whatever it
 * throws makes an attempt fail, and the delivery is tried again. Ten seconds without an answer are a failure too: put
 * aside what takes longer.
 */
export type OnEvent = (event: JobRunEvent) => unknown;

const BYTES_MAX = 1_048_576;

interface Answer {
  status: number;
  /** Shown in the log of deliveries. */
  text?: string;
}

type Receive = (
  headers: DeliveryHeaders,
  readBody: () => Promise<string | Uint8Array> | string | Uint8Array,
) => Promise<Answer>;

/** What is the same for all of them. Throws what is no fault of the request. */
function receiving(options: HandlerOptions, onEvent: OnEvent): Receive {
  // What no request can be right with is told when the program starts.
  secretsOf(options);
  return async (headers, readBody) => {
    let event: JobRunEvent;
    try {
      event = verify(await readBody(), headers, options);
    } catch (error) {
      if (!(error instanceof RefusedDelivery)) throw error;
      options.onRefused?.(error);
      return { status: error.status, text: error.code };
    }
    try {
      await onEvent(event);
      return { status: 204 };
    } catch (error) {
      if ((error as { code?: unknown } | null)?.code !== 'repeat_underway') throw error;
      return { status: 503, text: 'repeat_underway' };
    }
  };
}

/** What is used of the requests of Express and of `node:http`. */
export interface NodeRequest extends AsyncIterable<Uint8Array | string> {
  headers: Readonly<Record<string, string | string[] | undefined>>;
  readableEnded: boolean;
  /** What a parser left; bytes and text will do. */
  body?: unknown;
  /** Where a platform keeps the bytes beside what it parsed, as Google's functions do. */
  rawBody?: unknown;
}

export interface NodeResponse {
  statusCode: number;
  end(text?: string): unknown;
}

/**
 * For Express, `app.post('/webhooks', expressHandler({ secrets }, onEvent))`, before any `express.json()`, and for
 * `node:http`, `createServer(expressHandler(…))`. What `onEvent` throws goes to `next`, or is answered 500 where there is none.
 */
export function expressHandler(
  options: HandlerOptions,
  onEvent: OnEvent,
): (request: NodeRequest, response: NodeResponse, next?: (error?: unknown) => void) => void {
  const receive = receiving(options, onEvent);
  return (request, response, next) => {
    const answer = ({ status, text }: Answer) => {
      response.statusCode = status;
      response.end(text);
    };
    receive(request.headers, () => bodyOf(request, options.bytesMax)).then(answer, (error) => {
      if (next === undefined) answer({ status: 500 });
      else next(error);
    });
  };
}

async function bodyOf(request: NodeRequest, bytesMax = BYTES_MAX): Promise<string | Uint8Array> {
  for (const held of [request.rawBody, request.body])
    if (typeof held === 'string' || held instanceof Uint8Array) return held;
  if (request.readableEnded) throw new TypeError(PARSED);
  return await joined(request, bytesMax);
}

async function joined(chunks: AsyncIterable<Uint8Array | string>, bytesMax: number): Promise<Uint8Array> {
  const read: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    const piece = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    bytes += piece.length;
    if (bytes > bytesMax) throw new RefusedDelivery('too_large');
    read.push(piece);
  }
  return Buffer.concat(read, bytes);
}

/** What is used of Fastify. */
export interface FastifyScope {
  removeAllContentTypeParsers(): unknown;
  addContentTypeParser(
    contentType: string,
    options: { parseAs: 'buffer'; bodyLimit: number },
    // biome-ignore lint/suspicious/noExplicitAny: what Fastify hands over depends on how it was made.
    parse: (request: any, body: any, done: (error: Error | null, body?: unknown) => void) => void,
  ): unknown;
  post(
    path: string,
    // biome-ignore lint/suspicious/noExplicitAny: as above.
    handler: (request: any, reply: any) => Promise<unknown>,
  ): unknown;
}

/**
 * For Fastify: `app.register(fastifyHandler('/webhooks', { secrets }, onEvent))`. A scope of its own, in which bodies stay
 * bytes; the rest of the application parses its bodies as before.
 */
export function fastifyHandler(
  path: string,
  options: HandlerOptions,
  onEvent: OnEvent,
): (scope: FastifyScope) => Promise<void> {
  const receive = receiving(options, onEvent);
  return async (scope) => {
    scope.removeAllContentTypeParsers();
    const reading = { parseAs: 'buffer', bodyLimit: options.bytesMax ?? BYTES_MAX } as const;
    scope.addContentTypeParser('*', reading, (_request, body, done) => done(null, body));
    scope.post(path, async (request, reply) => {
      const { status, text = '' } = await receive(request.headers, () => request.body ?? '');
      return reply.code(status).type('text/plain').send(text);
    });
  };
}

/**
 * For whatever speaks the web's `Request` and `Response`: Hono, Next.js, Deno, Bun, workers with Node's modules. What
 * `onEvent` throws is thrown.
 */
export function webHandler(
  options: HandlerOptions,
  onEvent: OnEvent,
): (request: Request) => Promise<Response> {
  const receive = receiving(options, onEvent);
  return async (request) => {
    const { status, text } = await receive(request.headers, async () => {
      if (request.bodyUsed) throw new TypeError(PARSED);
      return request.body === null ? '' : await joined(request.body, options.bytesMax ?? BYTES_MAX);
    });
    return new Response(text ?? null, { status });
  };
}
