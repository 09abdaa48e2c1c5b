import { readdir, readFile } from 'node:fs/promises';
import { describe, expect, test } from '@jest/globals';
import { EVENT_TYPES, type JobRunEvent, sampleEvent } from '@runhook/contract';
import {
  FORMAT_NAMES,
  FORMATS,
  type Format,
  formatByName,
  formatOptionProblems,
  recogniseFormat,
} from '@runhook/contract/formats';
import { EVENTS, SUBSCRIPTION } from '../fixtures.ts';
import { TARGET_RULES } from './targets.ts';

const FOLDER = new URL('../../src/formats/', import.meta.url);
const OPTIONS = { routing_key: '0123456789abcdef0123456789abcdef' };
const CONTEXT = { subscription: SUBSCRIPTION, consoleUrl: 'https://runhook.example/', options: OPTIONS };
/** Format written by scripts/build/golden.mjs. */
interface Golden {
  subscription: { id: string; name: string };
  consoleUrl: string;
  options: Record<string, string>;
  messages: { event: JobRunEvent; body?: object; nothing?: string }[];
}

test('each folder is a format of the registry, with the name of the folder', async () => {
  const entries = await readdir(FOLDER, { withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => name);
  expect([...FORMAT_NAMES].sort()).toEqual(folders.sort());
  expect(FORMAT_NAMES[0]).toBe('runhook');
  expect(formatByName(null)).toBe(FORMATS[0]);
  expect(formatByName('unknown')).toBeNull();
});

describe.each(FORMATS.map((format) => [format.name, format] as const))('the format %s', (name, format) => {
  test('renders the golden bodies, which its target accepts', async () => {
    const golden = JSON.parse(await readFile(new URL(`${name}/golden.json`, FOLDER), 'utf8')) as Golden;
    const { messages, ...context } = golden;
    expect(messages).toHaveLength(EVENT_TYPES.length + 1);
    for (const { event, body, nothing } of messages) {
      const rendering = format.render({ event, ...context });
      expect(rendering.nothing).toBe(nothing);
      // As text, because the order of keys is part of the bytes.
      expect(rendering.body).toBe(body && JSON.stringify(body));
      if (rendering.body !== undefined) TARGET_RULES[name]?.(rendering.body);
    }
  });

  test('sends nothing for exactly the types that it does not list', () => {
    for (const type of EVENT_TYPES) {
      const { nothing } = format.render({ event: EVENTS[type], ...CONTEXT });
      expect(nothing === undefined).toBe(format.eventTypes.includes(type));
    }
    expect(format.eventTypes).toContain(format.sampleEventType);
  });

  test('renders without the address of the console', () => {
    const { body } = format.render({ event: EVENTS[format.sampleEventType], ...CONTEXT, consoleUrl: null });
    TARGET_RULES[name]?.(body as string);
    expect(body).not.toContain('https://');
  });

  test.each(format.responses)('interprets the response $statusCode $body as $result', (row) => {
    expect(resultOf(format, row)).toBe(row.result);
  });
});

function resultOf(format: Format, row: Format['responses'][number]): string {
  const { statusCode, body, isComplete = true } = row;
  const interpretation = format.interpret({ statusCode, body, isComplete, loggedBody: body });
  if (interpretation !== null) return interpretation.result;
  return statusCode >= 200 && statusCode < 300 ? 'delivered' : 'retry';
}

test.each(FORMATS.map((format) => [format.name, format] as const))(
  'a message of the format %s quotes the logged body only, and cuts no character of it',
  (_name, format) => {
    const loggedBody = `${'a'.repeat(199)}🚀${'b'.repeat(9)}`;
    const response = { statusCode: 400, isComplete: true, body: 'the raw\0body', loggedBody };
    const { message = '' } = format.interpret(response) ?? {};
    expect(message).not.toContain('raw');
    if (message !== '') expect(message).toContain(`${'a'.repeat(199)}🚀…`);
  },
);

const REPEATED = (text: string) => text.repeat(Math.ceil(65_536 / text.length)).slice(0, 65_536);

describe.each([
  ['Slack markup', '*b* _i_ ~s~ `c` <!here> <!channel|x> <@U012> <https://evil.example|x> &lt;!here&gt;'],
  ['mentions', '@here @everyone @channel <@&1> <@1> <at>x</at>'],
  ['links', 'https://evil.example/ [click](https://evil.example) <https://evil.example> www.evil.example'],
  ['Markdown', '# h **b** __u__ ||s|| > q - l 1. n `c` ```x``` ![i](https://evil.example/i.png) \\* :fire:'],
  ['functions and templates', "{{DATE(2017-02-14T06:08:39Z)}} {{{TIME(x)}}} $\u007Bname} @{body('x')}"],
  ['control characters', 'a\u0000\u0007\u001b[31m\r\n\tb\u202Egnp\u2028c\u2069\uD800'],
  ['quotation marks and backslashes', '"\'\\" \\\\ \\" </script>'],
  ['65,536 characters', REPEATED('a')],
  ['65,536 control characters', REPEATED('\u0001')],
  ['65,536 characters to escape', REPEATED('*')],
  ['emoji at the cut', REPEATED('😀')],
  ['emoji at the other cut', `a${REPEATED('😀').slice(0, -2)}`],
  ['ampersands at the cut', REPEATED('&')],
  ['only spaces', '  '],
  ['only characters that are removed', '\u200E\u0001\u2028\u202E'],
  ['nothing', ''],
] as const)('a text of an event with %s', (_description, text) => {
  const name = [...text].slice(0, 1_024).join('');
  const texts = { jobName: name, environmentName: name, engineVersion: name, projectName: name };
  const events = EVENT_TYPES.map((type) => {
    const event = EVENTS[type];
    return { ...event, data: { ...event.data, ...texts, runStatusMessage: text, runReason: text } };
  });

  test.each(FORMATS.slice(1).map((format) => [format.name, format] as const))(
    'is harmless in the format %s',
    (formatName, format) => {
      for (const event of events as JobRunEvent[]) {
        const subscription = { ...SUBSCRIPTION, name: [...name].slice(0, 255).join('') || 'x' };
        const { body } = format.render({ event, ...CONTEXT, subscription });
        if (body === undefined) continue;
        TARGET_RULES[formatName]?.(body);
        // JSON escapes an unpaired surrogate, so a half of an emoji would be text of the body.
        expect(body).not.toMatch(/\\ud[89a-f]/i);
      }
    },
  );
});

test('the bytes of a message depend on nothing but the event, the format, its options and the console', () => {
  for (const format of FORMATS) {
    const input = { event: EVENTS['job.run.errored'], ...CONTEXT };
    expect(format.render(input)).toEqual(format.render(structuredClone(input)));
  }
});

test.each([
  ['https://hooks.slack.com/services/T0/B0/x', 'slack'],
  ['https://hooks.slack-gov.com/services/T0/B0/x', 'slack'],
  ['https://hooks.slack.com/triggers/T0/1/x', null],
  ['https://hooks.slack.com.evil.example/services/T0/B0/x', null],
  ['https://prod-1.westeurope.logic.azure.com:443/workflows/x/triggers/manual/paths/invoke?sig=x', 'teams'],
  [
    'https://default1.82.environment.api.powerplatform.com:443/powerautomate/automations/direct/workflows/x/triggers/manual/paths/invoke?sig=x',
    'teams',
  ],
  ['https://contoso.webhook.office.com/webhookb2/x/IncomingWebhook/y', 'teams'],
  ['https://discord.com/api/webhooks/1/x', 'discord'],
  ['https://discord.com/api/webhooks/1/x/slack', null],
  ['https://events.pagerduty.com/v2/enqueue', 'pagerduty'],
  ['https://events.eu.pagerduty.com/v2/enqueue', 'pagerduty'],
  ['https://example.com/hooks', null],
  ['not a URL', null],
])('recognises the target of %s as %s', (url, name) => {
  expect(recogniseFormat(url)?.name ?? null).toBe(name);
});

test('the options of a format are its own, complete and valid', () => {
  const pagerduty = formatByName('pagerduty') as Format;
  const fieldsOf = (...parameters: Parameters<typeof formatOptionProblems>) =>
    formatOptionProblems(...parameters).map(({ field }) => field);
  expect(formatOptionProblems(pagerduty, OPTIONS)).toEqual([]);
  expect(fieldsOf(pagerduty, null)).toEqual(['format_options.routing_key']);
  expect(fieldsOf(pagerduty, { routing_key: 'short' })).toEqual(['format_options.routing_key']);
  expect(fieldsOf(pagerduty, { ...OPTIONS, toString: 'x' })).toEqual(['format_options.toString']);
  expect(fieldsOf(formatByName('slack') as Format, OPTIONS)).toEqual(['format_options.routing_key']);
});

test.each([
  ['Error', 20, 'failed'],
  ['Errored', 20, 'failed'],
  ['Cancelled', 30, 'was cancelled'],
  ['Fine', 10, 'succeeded'],
  ['Success', 0, 'succeeded'],
] as const)(
  'a message of a completed run with status %s and code %d says that it %s',
  (text, code, outcome) => {
    const { data } = EVENTS['job.run.completed'];
    const event = { ...EVENTS['job.run.completed'], data: { ...data, runStatus: text, runStatusCode: code } };
    const render = (name: string) => formatByName(name)?.render({ event: event as JobRunEvent, ...CONTEXT });
    expect(JSON.parse(render('slack')?.body ?? '').text).toContain(`${data.jobName} ${outcome}`);
    const pagerduty = render('pagerduty');
    if (code === 30) expect(pagerduty?.nothing).toContain('cancelled runs');
    else expect(pagerduty?.body).toContain(outcome.startsWith('failed') ? '"trigger"' : '"resolve"');
  },
);

describe('the alert of a job at PagerDuty', () => {
  const pagerduty = formatByName('pagerduty') as Format;
  const render = (type: 'job.run.errored' | 'job.run.completed', consoleUrl: string | null) =>
    JSON.parse(pagerduty.render({ event: EVENTS[type], ...CONTEXT, consoleUrl }).body as string) as {
      event_action: string;
      dedup_key: string;
    };

  test('has one key for the events of a job in an installation', () => {
    const trigger = render('job.run.errored', 'https://runhook.example/');
    const resolve = render('job.run.completed', 'https://runhook.example');
    expect([trigger.event_action, resolve.event_action]).toEqual(['trigger', 'resolve']);
    expect(trigger.dedup_key).toBe('runhook.example/1/123');
    expect(resolve.dedup_key).toBe(trigger.dedup_key);
    expect(render('job.run.errored', 'https://other.example').dedup_key).not.toBe(trigger.dedup_key);
    expect(render('job.run.errored', null).dedup_key).toBe('runhook/1/123');
  });

  test('is not that of a real job if the event is a sample', () => {
    const identity = {
      accountId: 1,
      eventId: EVENTS['job.run.errored'].eventId,
      now: new Date(),
      format: 'pagerduty',
    };
    const event = sampleEvent('job.run.errored', identity);
    const { dedup_key } = JSON.parse(
      pagerduty.render({ ...CONTEXT, event, consoleUrl: null }).body as string,
    ) as {
      dedup_key: string;
    };
    expect(dedup_key).toBe('runhook/1/2147483647');
  });
});
