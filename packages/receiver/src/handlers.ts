import {
  type DeliveryHeaders,
  InvalidDeliveryError,
  type JobRunEvent,
  keysOf,
  PARSED_BODY_MESSAGE,
  type VerifyOptions,
  verify,
} from './verify.ts';

export interface HandlerOptions extends VerifyOptions {
  /** Called for each rejected request, which also gets an error response. */
  onRejected?: (error: InvalidDeliveryError) => void;
  /** Maximum size of the body; default 1 MiB, which no delivery exceeds. */
  bytesMax?: number;
}

/**
 * Called with each genuine event. When it has returned, and its promise has resolved, the delivery gets a 204 response.
 * If it throws, the attempt fails and the delivery is retried. An attempt without a response fails after 10 s by
 * default, so longer work should be queued.
 */
export type OnEvent = (event: JobRunEvent) => unknown;

const BYTES_MAX = 1_048_576;

interface HandlerResponse {
  status: number;
  /** Shown in the log of deliveries. */
  text?: string;
}

type Receive = (
  headers: DeliveryHeaders,
  readBody: () => Promise<string | Uint8Array> | string | Uint8Array,
) => Promise<HandlerResponse>;

/** The part that all handlers share. Throws errors that the request did not cause. */
function createReceive(options: HandlerOptions, onEvent: OnEvent): Receive {
  // Throws at program start if no request could be valid with these options.
  keysOf(options);
  return async (headers, readBody) => {
    let event: JobRunEvent;
    try {
      event = verify(await readBody(), headers, options);
    } catch (error) {
      if (!(error instanceof InvalidDeliveryError)) throw error;
      options.onRejected?.(error);
      return { status: error.status, text: error.code };
    }
    try {
      await onEvent(event);
      return { status: 204 };
    } catch (error) {
      if ((error as { code?: unknown } | null)?.code !== 'event_in_progress') throw error;
      return { status: 503, text: 'event_in_progress' };
    }
  };
}

/** The members of Express and `node:http` requests that are used here. */
export interface NodeRequest extends AsyncIterable<Uint8Array | string> {
  headers: Readonly<Record<string, string | string[] | undefined>>;
  readableEnded: boolean;
  /** The result of a body parser; bytes and text are accepted. */
  body?: unknown;
  /** The unparsed bytes on platforms that also parse the body, such as Google Cloud Functions. */
  rawBody?: unknown;
}

export interface NodeResponse {
  statusCode: number;
  end(text?: string): unknown;
}

/**
 * Handler for Express, `app.post('/webhooks', expressHandler({ secrets }, onEvent))` before any `express.json()`, and
 * for `node:http`, `createServer(expressHandler(…))`. Errors of `onEvent` are passed to `next`, or give a 500 response
 * if there is none.
 */
export function expressHandler(
  options: HandlerOptions,
  onEvent: OnEvent,
): (request: NodeRequest, response: NodeResponse, next?: (error?: unknown) => void) => void {
  const receive = createReceive(options, onEvent);
  return (request, response, next) => {
    const sendResponse = ({ status, text }: HandlerResponse) => {
      response.statusCode = status;
      response.end(text);
    };
    receive(request.headers, () => readNodeBody(request, options.bytesMax)).then(sendResponse, (error) => {
      if (next === undefined) sendResponse({ status: 500 });
      else next(error);
    });
  };
}

async function readNodeBody(request: NodeRequest, bytesMax = BYTES_MAX): Promise<string | Uint8Array> {
  for (const candidate of [request.rawBody, request.body])
    if (typeof candidate === 'string' || candidate instanceof Uint8Array) return candidate;
  if (request.readableEnded) throw new TypeError(PARSED_BODY_MESSAGE);
  return await joinChunks(request, bytesMax);
}

async function joinChunks(chunks: AsyncIterable<Uint8Array | string>, bytesMax: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of chunks) {
    const part = typeof chunk === 'string' ? Buffer.from(chunk) : chunk;
    bytes += part.length;
    if (bytes > bytesMax) throw new InvalidDeliveryError('too_large');
    parts.push(part);
  }
  return Buffer.concat(parts, bytes);
}

/** The members of Fastify that are used here. */
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
 * Handler for Fastify: `app.register(fastifyHandler('/webhooks', { secrets }, onEvent))`. It uses a separate scope in
 * which bodies remain bytes; the parsers of the rest of the application are not affected.
 */
export function fastifyHandler(
  path: string,
  options: HandlerOptions,
  onEvent: OnEvent,
): (scope: FastifyScope) => Promise<void> {
  const receive = createReceive(options, onEvent);
  return async (scope) => {
    scope.removeAllContentTypeParsers();
    const parserOptions = { parseAs: 'buffer', bodyLimit: options.bytesMax ?? BYTES_MAX } as const;
    scope.addContentTypeParser('*', parserOptions, (_request, body, done) => done(null, body));
    scope.post(path, async (request, reply) => {
      const { status, text = '' } = await receive(request.headers, () => request.body ?? '');
      return reply.code(status).type('text/plain').send(text);
    });
  };
}

/**
 * Handler for frameworks with the web's `Request` and `Response`: Hono, Next.js, Deno, Bun, workers with Node's
 * modules. Throws the errors of `onEvent`.
 */
export function webHandler(
  options: HandlerOptions,
  onEvent: OnEvent,
): (request: Request) => Promise<Response> {
  const receive = createReceive(options, onEvent);
  return async (request) => {
    const { status, text } = await receive(request.headers, async () => {
      if (request.bodyUsed) throw new TypeError(PARSED_BODY_MESSAGE);
      return request.body === null ? '' : await joinChunks(request.body, options.bytesMax ?? BYTES_MAX);
    });
    return new Response(text ?? null, { status });
  };
}
