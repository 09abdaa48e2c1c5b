import type { ReceivedRequest, ReceiverResponse, Responder } from './receiver.ts';

/*
 * Responders of a receiver (`startReceiver`) that accept and reject requests as Slack, Microsoft Teams, Discord and
 * PagerDuty do. The last part of the path selects an error of the target; `ok` and any other name select none.
 */

// biome-ignore lint/suspicious/noExplicitAny: targets check what they read
type Message = any;

function messageOf({ body }: ReceivedRequest): Message {
  try {
    return JSON.parse(body.toString());
  } catch {
    return null;
  }
}

/** Returns the last part of the path. */
function nameOf({ path }: ReceivedRequest): string {
  return path.split('?')[0]?.split('/').at(-1) ?? '';
}

const json = (status: number, value: unknown): ReceiverResponse => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(value),
});

const SLACK_ERRORS: Readonly<Record<string, number>> = {
  channel_is_archived: 410,
  channel_not_found: 404,
  action_prohibited: 403,
  no_service: 404,
  invalid_token: 403,
  rollup_error: 500,
};

/** An incoming webhook of Slack. */
export const slackTarget: Responder = (request) => {
  const error = nameOf(request);
  if (error in SLACK_ERRORS) return { status: SLACK_ERRORS[error] as number, body: error };
  const message = messageOf(request);
  if (message === null) return { status: 400, body: 'invalid_payload' };
  if (typeof message.text !== 'string' && !Array.isArray(message.blocks))
    return { status: 400, body: 'no_text' };
  const isTooLong = message.blocks?.some(
    (block: Message) => block.type === 'header' && block.text.text.length > 150,
  );
  return isTooLong ? { status: 400, body: 'invalid_blocks' } : { status: 200, body: 'ok' };
};

const azureError = (status: number, code: string) => json(status, { error: { code, message: code } });

const TEAMS_FAILED =
  'Webhook message delivery failed with error: Microsoft Teams endpoint returned HTTP error';

/** A workflow of Microsoft Teams, whose address is signed; errors `throttled` and `too_large` are those of a connector. */
export const teamsTarget: Responder = (request) => {
  if (!/[?&]sig=./.test(request.path)) return azureError(401, 'DirectApiAuthorizationRequired');
  if (request.headers.authorization !== undefined)
    return azureError(400, 'DirectApiRequestHasMoreThanOneAuthorization');
  if (nameOf(request) === 'deleted') return azureError(404, 'WorkflowNotFound');
  if (nameOf(request) === 'throttled')
    return { status: 200, body: `${TEAMS_FAILED} 429 with ContextId tcid=0` };
  if (nameOf(request) === 'too_large')
    return { status: 200, body: `${TEAMS_FAILED} 413 with ContextId tcid=0` };
  // Announces a longer body than it sends.
  if (nameOf(request) === 'cut_off') return { status: 200, headers: { 'content-length': '100' }, body: '1' };
  const [card] = messageOf(request)?.attachments ?? [];
  return card?.content?.type === 'AdaptiveCard'
    ? { status: 202 }
    : { status: 200, body: `${TEAMS_FAILED} 400 with ContextId tcid=0` };
};

/** A webhook of Discord. */
export const discordTarget: Responder = (request) => {
  if (nameOf(request) === 'deleted') return json(404, { message: 'Unknown Webhook', code: 10015 });
  if (nameOf(request) === 'limited')
    return json(429, { message: 'You are being rate limited.', retry_after: 0.01, global: false });
  const message = messageOf(request);
  if (!message?.content && !(message?.embeds?.length > 0))
    return json(400, { message: 'Cannot send an empty message', code: 50006 });
  const isTooLong = message.embeds?.some((embed: Message) => [...(embed.title ?? '')].length > 256);
  return isTooLong ? json(400, { message: 'Invalid Form Body', code: 50035 }) : { status: 204 };
};

/** The Events API v2 of PagerDuty. */
export const pagerDutyTarget: Responder = (request) => {
  const { routing_key: key, event_action: action, dedup_key: dedupKey, payload } = messageOf(request) ?? {};
  const errors = [
    ...(/^[0-9A-Za-z]{32}$/.test(key ?? '') ? [] : ['Invalid routing key']),
    ...(['trigger', 'resolve'].includes(action) ? [] : ["'event_action' is missing or blank"]),
    ...(action === 'trigger' && !payload?.summary ? ["'payload.summary' is missing or blank"] : []),
  ];
  if (errors.length > 0)
    return json(400, { status: 'invalid event', message: 'Event object is invalid', errors });
  return json(202, { status: 'success', message: 'Event processed', dedup_key: dedupKey });
};
