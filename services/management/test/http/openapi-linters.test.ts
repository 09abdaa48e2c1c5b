import { expect, test } from '@jest/globals';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import spectralCore from '@stoplight/spectral-core';
import spectralParsers from '@stoplight/spectral-parsers';
import spectralRulesets from '@stoplight/spectral-rulesets';
import { openApiDocument } from '../../src/http/openapi/document.ts';

// Warnings count as errors, because users of the API who run a linter with its defaults see them.

async function spectral(text: string): Promise<string[]> {
  const linter = new spectralCore.Spectral();
  linter.setRuleset({ extends: [[spectralRulesets.oas as never, 'recommended']], rules: {} });
  const findings = await linter.run(new spectralCore.Document(text, spectralParsers.Json, 'openapi.json'));
  return findings.map(({ code, path, message }) => `${code} ${path.join('/')}: ${message}`);
}

async function redocly(text: string): Promise<string[]> {
  const config = await createConfig({ extends: ['recommended'] });
  const findings = await lintFromString({ source: text, absoluteRef: 'openapi.json', config });
  return findings.map(({ ruleId, message, location }) => `${ruleId} ${location[0]?.pointer}: ${message}`);
}

test.each([
  ['Spectral', spectral],
  ['Redocly', redocly],
])(
  '%s reports nothing for the OpenAPI document by its default rules, but problems of a worse one',
  async (_, lint) => {
    const document = openApiDocument();
    expect(await lint(JSON.stringify(document))).toEqual([]);
    const { responses: _responses, ...worse } = document.paths['/api/v3/profile']?.get ?? {};
    const paths = { '/api/v3/profile/': { get: worse } };
    expect((await lint(JSON.stringify({ ...document, paths }))).length).toBeGreaterThan(1);
  },
);
