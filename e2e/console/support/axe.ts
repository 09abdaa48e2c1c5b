import axe, { type AxeResults, type NodeResult, type RunOptions } from 'axe-core';
import type { Page } from 'playwright-core';

/** Of each element that breaks a rule: the rule, and the element with what is wrong. */
export interface AxeFinding {
  rule: string;
  node: NodeResult;
}

/**
 * What axe finds on the page as it is now. The page keeps axe until it goes elsewhere: it is half a megabyte of script, most
 * of what a look would take. There is no frame to look into.
 * @param rules only these; all when omitted
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

/** Colours that are on their way to others are none that anybody reads. Two frames: by then what was asked for has begun. */
const SETTLED = `new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))
  .then(() => Promise.allSettled(document.getAnimations()
    .filter((animation) => animation instanceof CSSTransition).map(({ finished }) => finished)))
  .then(() => undefined)`;
