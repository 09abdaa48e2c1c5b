import { expect, test } from '@jest/globals';
import Joi from 'joi';
import { EnvironmentError, parseEnvironment } from '../src/index.ts';

const schema = Joi.object<{ PORT: number; DATABASE_URL: string; LOG_LEVEL: string; VERBOSE?: boolean }>({
  PORT: Joi.number().port().required(),
  DATABASE_URL: Joi.string()
    .uri({ scheme: ['postgresql'] })
    .required(),
  LOG_LEVEL: Joi.string().valid('info', 'debug').default('info'),
  VERBOSE: Joi.boolean(),
});

function problemsOf(parse: () => unknown): readonly string[] {
  try {
    parse();
  } catch (error) {
    if (error instanceof EnvironmentError) return error.problems;
    throw error;
  }
  throw new Error('the environment was accepted');
}

test('values are converted, defaults are filled in, and unknown variables are ignored', () => {
  const source = { PORT: '8080', DATABASE_URL: 'postgresql://u:p@db/x', VERBOSE: 'true', HOME: '/root' };
  expect(parseEnvironment(schema, source)).toEqual({
    PORT: 8080,
    DATABASE_URL: 'postgresql://u:p@db/x',
    LOG_LEVEL: 'info',
    VERBOSE: true,
  });
});

test('all problems are reported together, one per line, by the name of the variable', () => {
  const problems = problemsOf(() =>
    parseEnvironment(schema, { PORT: 'eighty', LOG_LEVEL: 'loud', VERBOSE: 'perhaps' }),
  );
  expect(problems).toEqual([
    'PORT must be a number',
    'DATABASE_URL is required',
    'LOG_LEVEL must be one of [info, debug]',
    'VERBOSE must be a boolean',
  ]);
});

test('an empty variable counts as not set', () => {
  const source = { PORT: '', DATABASE_URL: 'postgresql://db/x', LOG_LEVEL: '' };
  expect(problemsOf(() => parseEnvironment(schema, source))).toEqual(['PORT is required']);
});

test('no message repeats a value, whatever the rule and its message', () => {
  const secret = 'hunter2-secret';
  const leaky = Joi.object({
    PATTERN: Joi.string().pattern(/^\d+$/),
    NAMED: Joi.string().pattern(/^\d+$/, 'number'),
    INVERTED: Joi.string().pattern(/secret/, { invert: true }),
    URI: Joi.string().uri(),
    THROWN: Joi.string().custom((value) => {
      throw new Error(`bad ${value}`);
    }),
    SAID: Joi.string().custom((value, helpers) => helpers.message({ custom: `SAID has ${value}` })),
    ONLY: Joi.valid('a'),
    NUMBER: Joi.number(),
    OWN: Joi.number().messages({ 'number.base': '{{#label}} is {{#value}}' }),
  });
  const names = ['PATTERN', 'NAMED', 'INVERTED', 'URI', 'THROWN', 'SAID', 'ONLY', 'NUMBER', 'OWN'];
  const source = Object.fromEntries(names.map((name) => [name, secret]));
  const problems = problemsOf(() => parseEnvironment(leaky, source));
  expect(problems).toHaveLength(names.length);
  for (const [index, problem] of problems.entries()) {
    expect(problem).not.toContain('hunter2');
    expect(problem).toContain(names[index]);
    expect(problem).not.toContain('\n');
  }
});

test('a rule over several variables names them', () => {
  const pair = Joi.object({ CERT: Joi.string(), KEY: Joi.string() }).and('CERT', 'KEY');
  const [problem] = problemsOf(() => parseEnvironment(pair, { CERT: 'sesame-open' }));
  expect(problem).toBe('The environment contains [CERT] without its required peers [KEY]');
});
