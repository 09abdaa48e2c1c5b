import { expect } from '@jest/globals';
import type { Locator, Page } from 'playwright-core';
import { expectOnPage } from './waiting.ts';

/** Waits for a page by its heading, and returns the heading. */
export async function headingOf(page: Page, name: string | RegExp): Promise<Locator> {
  const heading = page.getByRole('heading', { level: 1, name, exact: typeof name === 'string' });
  await heading.waitFor();
  return heading;
}

/**
 * Waits for the charts of a webhook's page. They shift the buttons below them when they are rendered, so an earlier click
 * could miss.
 */
export async function chartsOf(page: Page): Promise<Locator> {
  const charts = page.getByRole('button', { name: 'Show as a table' });
  await charts.waitFor();
  return charts;
}

/** The properties of elements that these functions use in the browser: the types of the tests do not include the DOM. */
interface ElementInPage {
  getAttribute(name: string): string | null;
  ownerDocument: {
    activeElement: unknown;
    getElementById(id: string): { textContent: string | null } | null;
  };
}

/** Returns the accessible description of an element. */
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
  await expectOnPage(async () => expect(await hasFocus(locator)).toBe(true));
}

async function hasFocus(locator: Locator): Promise<boolean> {
  return await locator.evaluate((node) => {
    const element = node as unknown as ElementInPage;
    return element.ownerDocument.activeElement === element;
  });
}

/** Opens the collapsed options of the form of a webhook. */
export async function openOptions(page: Page): Promise<void> {
  await page.locator('summary', { hasText: 'More options' }).click();
  await page.getByRole('textbox', { name: 'Description' }).waitFor();
}

/** Clicks a switch on its track, which is drawn over the input: the input itself never receives the pointer. */
export async function clickSwitch(input: Locator): Promise<void> {
  await input.locator('xpath=following-sibling::*[1]').click();
}

/** Returns what covers a part of the element; empty if it is completely visible. Checks the topmost element at nine points. */
export async function findCoveringElements(locator: Locator): Promise<string[]> {
  return await locator.evaluate((node) => {
    const element = node as unknown as ElementUnderPoint;
    const { left, top, width, height } = element.getBoundingClientRect();
    const covers = new Set<string>();
    for (const x of [2, width / 2, width - 2])
      for (const y of [2, height / 2, height - 2]) {
        const covering = element.ownerDocument.elementFromPoint(left + x, top + y);
        if (covering === null) covers.add('the edge of the window');
        else if (!element.contains(covering) && !covering.contains(element))
          covers.add(covering.outerHTML.slice(0, 120));
      }
    return [...covers];
  });
}

interface ElementUnderPoint {
  getBoundingClientRect(): { left: number; top: number; width: number; height: number };
  contains(other: ElementUnderPoint): boolean;
  outerHTML: string;
  ownerDocument: { elementFromPoint(x: number, y: number): ElementUnderPoint | null };
}

/** Waits until the clipboard has the expected text, and returns it: a click does not wait for the clipboard. */
export async function expectCopied(page: Page, expected: string | RegExp): Promise<string> {
  return await expectOnPage(async () => {
    const copied = String(await page.evaluate('navigator.clipboard.readText()'));
    if (typeof expected === 'string') expect(copied).toBe(expected);
    else expect(copied).toMatch(expected);
    return copied;
  });
}

/** Returns path and query of the URL. */
export function readPageLocation(page: Page): string {
  const { pathname, search } = new URL(page.url());
  return pathname + search;
}
