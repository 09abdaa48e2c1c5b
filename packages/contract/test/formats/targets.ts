// The rules that targets publish for the messages that they accept.
import { Buffer } from 'node:buffer';
import { createRequire } from 'node:module';
import { expect } from '@jest/globals';
import { codePointLength } from '@runhook/contract';
import { HTTP } from 'cloudevents';

// biome-ignore lint/suspicious/noExplicitAny: messages are read by the rules of their targets, not by types
type Json = any;

/** Throws if the target would reject the body, or render a text of the event as anything but text. */
export const TARGET_RULES: Readonly<Record<string, (body: string) => void>> = {
  slack: checkSlack,
  teams: checkTeams,
  discord: checkDiscord,
  pagerduty: checkPagerDuty,
  cloudevents: checkCloudEvent,
  runhook: () => undefined,
};

function expectLength(text: unknown, charactersMax: number): void {
  expect(typeof text).toBe('string');
  expect(codePointLength(text as string)).toBeGreaterThan(0);
  expect(codePointLength(text as string)).toBeLessThanOrEqual(charactersMax);
}

/** https://docs.slack.dev/reference/block-kit/blocks */
function checkSlack(body: string): void {
  const { text, blocks } = JSON.parse(body) as Json;
  expectLength(text, 40_000);
  // Only entities remain of the characters that begin and end a mention or a link.
  expect(text.replace(/&(amp|lt|gt);/g, '')).not.toMatch(/[<>&]/);
  expect(blocks.length).toBeLessThanOrEqual(50);
  for (const block of blocks)
    if (block.type === 'header') checkPlainText(block.text, 150);
    else if (block.type === 'section') {
      expect(block.text !== undefined || block.fields !== undefined).toBe(true);
      if (block.text) checkPlainText(block.text, 3_000);
      expect(block.fields?.length ?? 1).toBeLessThanOrEqual(10);
      for (const field of block.fields ?? []) checkPlainText(field, 2_000);
    } else {
      expect(block.type).toBe('context');
      expect(block.elements.length).toBeLessThanOrEqual(10);
      for (const element of block.elements)
        if (element.type === 'mrkdwn')
          expect(element.text).toMatch(/^<https:\/\/runhook\.example\/[^<>|]*\|Open run \d+>$/);
        else checkPlainText(element, 3_000);
    }
}

/** Slack interprets no markup in a plain text. */
function checkPlainText(object: Json, charactersMax: number): void {
  expect(object).toEqual({ type: 'plain_text', text: expect.any(String), emoji: false });
  expectLength(object.text, charactersMax);
}

const require = createRequire(import.meta.url);
// Its modules need a bundler.
const { AdaptiveCard, SerializationContext }: Json = require('adaptivecards/dist/adaptivecards.js');

/** Parses the card with Microsoft's library, which reports unknown elements and invalid properties. */
function checkTeams(body: string): void {
  expect(Buffer.byteLength(body)).toBeLessThanOrEqual(28_000);
  const message = JSON.parse(body) as Json;
  expect(message.type).toBe('message');
  expect(message.attachments).toHaveLength(1);
  const [{ contentType, content }] = message.attachments;
  expect(contentType).toBe('application/vnd.microsoft.card.adaptive');
  const context = new SerializationContext();
  const card = new AdaptiveCard();
  card.parse(content, context);
  expect(context.eventCount).toBe(0);
  expect(card.validateProperties().validationEvents).toEqual([]);
  expect(card.toJSON().body).toHaveLength(content.body.length);
  // Interpreted as Markdown.
  expect(content.fallbackText).toMatch(/^Run \d+ [a-z, ]+$/);
  // Text blocks and facts interpret Markdown; every text evaluates functions.
  for (const { type, inlines } of content.body) {
    expect(type).toBe('RichTextBlock');
    for (const run of inlines) {
      expect(run.type).toBe('TextRun');
      expect(run.text).not.toContain('{{');
    }
  }
}

/** https://discord.com/developers/docs/resources/message#embed-object-embed-limits */
function checkDiscord(body: string): void {
  const { embeds, allowed_mentions } = JSON.parse(body) as Json;
  expect(allowed_mentions).toEqual({ parse: [] });
  expect(embeds).toHaveLength(1);
  const [{ title, description, fields, footer, timestamp }] = embeds;
  expectLength(title, 256);
  if (description !== undefined) expectLength(description, 4_096);
  expect(fields.length).toBeLessThanOrEqual(25);
  for (const { name, value } of fields) {
    expectLength(name, 256);
    expectLength(value, 1_024);
  }
  expectLength(footer.text, 2_048);
  expect(new Date(timestamp).toISOString()).toBe(timestamp);
  const markdown: string[] = [title, description ?? '', ...fields.map(({ value }: Json) => value)];
  const total = [...markdown, footer.text, ...fields.map(({ name }: Json) => name)].join('');
  expect(codePointLength(total)).toBeLessThanOrEqual(6_000);
  // Nothing that Discord interprets remains without its backslash.
  for (const text of markdown)
    expect(text.replace(/\\[!-/:-@[-`{-~]/g, '')).not.toMatch(/[*_~`|>#<:@[\]()\\-]/);
}

/** https://developer.pagerduty.com/docs/events-api-v2/trigger-events/ */
function checkPagerDuty(body: string): void {
  expect(Buffer.byteLength(body)).toBeLessThanOrEqual(512_000);
  const { routing_key, event_action, dedup_key, payload, links } = JSON.parse(body) as Json;
  expect(routing_key).toMatch(/^[0-9A-Za-z]{32}$/);
  expectLength(dedup_key, 255);
  expect(['trigger', 'resolve']).toContain(event_action);
  if (event_action === 'resolve') return;
  expectLength(payload.summary, 1_024);
  expectLength(payload.source, 1_024);
  expect(payload.severity).toBe('error');
  expect(Date.parse(payload.timestamp)).not.toBeNaN();
  for (const { href } of links ?? []) expect(href).toMatch(/^https:\/\//);
}

/** Parses the request with the SDK of CloudEvents. */
function checkCloudEvent(body: string): void {
  expect(Buffer.byteLength(body)).toBeLessThanOrEqual(65_536);
  const headers = { 'content-type': 'application/cloudevents+json; charset=utf-8' };
  const event = HTTP.toEvent({ headers, body }) as Json;
  expect(event.validate()).toBe(true);
  expect(event.specversion).toBe('1.0');
}
