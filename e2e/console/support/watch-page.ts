import type { BrowserContext, ConsoleMessage, Page, Request } from 'playwright-core';

/** Chromium logs this line for every response that is not a success. The page cannot prevent it. */
const FAILED_LOAD = /^Failed to load resource: /;

/**
 * Collects violations: requests to another host, violations of the content security policy, logged errors and exceptions. The
 * list grows while the context is open.
 */
export function watchContext(context: BrowserContext, ownOrigins: readonly string[]): string[] {
  const problems: string[] = [];
  context.on('request', (request: Request) => {
    const { protocol, origin } = new URL(request.url());
    if (protocol === 'data:' || protocol === 'blob:') return;
    if (!ownOrigins.includes(origin))
      problems.push(`requested another host: ${request.method()} ${request.url()}`);
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

/** Returns the elements that are wider than the page; empty if nothing scrolls sideways. */
export async function sidewaysOverflow(page: Page): Promise<string[]> {
  return await page.evaluate(`(() => {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width) return [];
    return [...document.querySelectorAll('body *')]
      .filter((element) => element.getBoundingClientRect().right > width + 1)
      .map((element) => element.tagName + '.' + element.className + ': ' + (element.textContent ?? '').slice(0, 60));
  })()`);
}
