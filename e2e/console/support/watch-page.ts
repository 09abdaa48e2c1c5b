import type { BrowserContext, ConsoleMessage, Page, Request } from 'playwright-core';

/** Chromium's own line for every answer that is not a success: the page does not write it, and cannot prevent it. */
const FAILED_LOAD = /^Failed to load resource: /;

/**
 * Collects what no page may do: talk to another host, break the policy of its content, log an error or throw one.
 * The list grows while the context is open.
 */
export function watchContext(context: BrowserContext, ownOrigins: readonly string[]): string[] {
  const problems: string[] = [];
  context.on('request', (request: Request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol === 'data:' || protocol === 'blob:') return;
    if (!ownOrigins.includes(origin))
      problems.push(`asked another host: ${request.method()} ${request.url()}`);
  });
  context.on('console', (message: ConsoleMessage) => {
    if (message.type() !== 'error' && message.type() !== 'warning') return;
    if (FAILED_LOAD.test(message.text())) return;
    problems.push(`console ${message.type()}: ${message.text()}`);
  });
  context.on('weberror', (error) =>
    problems.push(`uncaught: ${error.error().stack ?? error.error().message}`),
  );
  return problems;
}

/** What is wider than the page, as a list of elements; empty when nothing scrolls sideways. */
export async function sidewaysOverflow(page: Page): Promise<string[]> {
  return await page.evaluate(`(() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    return [...document.querySelectorAll('body *')]
      .filter((element) => element.getBoundingClientRect().right > width + 1)
      .map((element) => element.tagName + '.' + element.className + ': ' + (element.textContent ?? '').slice(0, 60));
  })()`);
}
