import axe, { type AxeResults, type NodeResult, type RunOptions } from 'axe-core';
import type { Page } from 'playwright-core';

/** An element that violates a rule. */
export interface AxeFinding {
  rule: string;
  node: NodeResult;
}

/**
 * Returns the findings of axe for the current page. axe stays loaded until the page navigates, because it is half a megabyte
 * of script and loading it dominates a check. The pages have no frames.
 * @param rules only these rules; all if omitted
 */
export async function axeFindings(page: Page, rules?: readonly string[]): Promise<AxeFinding[]> {
  if (!(await page.evaluate("typeof globalThis.axe === 'object'"))) await page.evaluate(axe.source);
  await page.evaluate(SETTLED);
  const options: RunOptions = {
    resultTypes: ['violations'],
    ...(rules && { runOnly: { type: 'rule', values: [...rules] } }),
  };
  const run = `globalThis.axe.run(document, ${JSON.stringify(options)}).then(({ violations }) => violations)`;
  const violations = (await page.evaluate(run)) as AxeResults['violations'];
  return violations.flatMap(({ id, nodes }) => nodes.map((node) => ({ rule: id, node })));
}

/**
 * Waits for transitions of colours, whose intermediate values are not relevant. A transition has begun after two frames. It
 * checks at each frame, because Chromium may leave `finished` of an ended transition pending.
 */
const SETTLED = `new Promise((settled) => {
  const isRunning = (animation) => animation instanceof CSSTransition && animation.playState === 'running';
  const check = () => document.getAnimations().some(isRunning) ? requestAnimationFrame(check) : settled();
  requestAnimationFrame(() => requestAnimationFrame(check));
})`;
