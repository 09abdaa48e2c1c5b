import { expect, test } from '@jest/globals';
import { parseMarkdown, parseMrkdwn } from '../src/message-preview/markup.ts';

const compact = (spans: readonly { text: string; style: string }[]) =>
  spans.map(({ text, style }) => (style === 'plain' ? text : `${style}(${text})`)).join('');

test.each([
  ['*Nightly build* failed', 'bold(Nightly build) failed'],
  ['<https://runhook.example/runs/1|Run 1> in _Production_', 'link(Run 1) in italic(Production)'],
  ['<https://runhook.example/>', 'link(https://runhook.example/)'],
  ['`dbt build` of a*b*c and snake_case_name', 'code(dbt build) of a*b*c and snake_case_name'],
  ['&lt;!here&gt; &amp;amp; *a &lt; b*', '<!here> &amp; bold(a < b)'],
  ['', ''],
])('mrkdwn %j is shown as %s', (text, shown) => {
  expect(compact(parseMrkdwn(text))).toBe(shown);
});

test.each([
  ['**Nightly build** failed', 'bold(Nightly build) failed'],
  ['[Run 1](https://runhook.example/runs/1) in _Production_', 'link(Run 1) in italic(Production)'],
  ['\\*\\*not bold\\*\\* \\[no\\]\\(link\\)', '**not bold** [no](link)'],
  ['**a \\* b**', 'bold(a * b)'],
  ['`dbt build` of snake_case_name', 'code(dbt build) of snake_case_name'],
])('Markdown %j is shown as %s', (text, shown) => {
  expect(compact(parseMarkdown(text))).toBe(shown);
});
