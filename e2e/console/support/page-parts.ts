import { expect } from '@jest/globals';
import { eventually } from '@runhook/testing';
import type { Locator, Page } from 'playwright-core';

/** Waits for a page by its heading, and gives it. */
export async function headingOf(page: Page, name: string | RegExp): Promise<Locator> {
  const heading = page.getByRole('heading', { level: 1, name, exact: typeof name === 'string' });
  await heading.waitFor();
  return heading;
}

/** What these functions use of an element, in the browser: the tests' own types know none. */
interface ElementInPage {
  getAttribute(name: string): string | null;
  ownerDocument: {
    activeElement: unknown;
    getElementById(id: string): { textContent: string | null } | null;
  };
}

/** What those who hear an element are told beside its name. */
export async function descriptionOf(locator: Locator): Promise<string> {
  return await locator.evaluate((node) => {
    const element = node as unknown as ElementInPage;
    return (element.getAttribute('aria-describedby') ?? '')
      .split(' ')
      .map((id) => element.ownerDocument.getElementById(id)?.textContent ?? '')
      .join(' ');
  });
}

/** Waits until the element has the focus. */
export async function expectFocus(locator: Locator): Promise<void> {
  await eventually(async () => expect(await hasFocus(locator)).toBe(true), { timeoutMs: 10_000 });
}

async function hasFocus(locator: Locator): Promise<boolean> {
  return await locator.evaluate((node) => {
    const element = node as unknown as ElementInPage;
    return element.ownerDocument.activeElement === element;
  });
}

/** Path and query of the address, below the root. */
export function placeOf(page: Page): string {
  const { pathname, search } = new URL(page.url());
  return pathname + search;
}
