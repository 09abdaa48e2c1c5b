import Joi from 'joi';

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

/** Rules of variables that more than one service reads. */
export const environmentRules = {
  postgresUrl: () => Joi.string().pattern(/^postgres(ql)?:\/\//, 'postgres:// URL'),
  /** 0 takes any free port. */
  port: () => Joi.number().port().allow(0),
  host: () => Joi.string().hostname(),
  wholeNumber: (min: number, max: number) => Joi.number().integer().min(min).max(max),
  /** OTLP over HTTP. */
  httpUrl: () => Joi.string().uri({ scheme: ['http', 'https'] }),
  flag: () => Joi.boolean(),
  logLevel: () => Joi.string().valid(...LOG_LEVELS),
  /** The value that `parse` reads from the text; what it throws must be a plain sentence without the value. */
  parsedBy: (parse: (text: string) => unknown) =>
    Joi.string().custom((text: string, helpers) => {
      try {
        return parse(text);
      } catch (error) {
        return helpers.message({ custom: '{{#label}}: {{#reason}}' }, { reason: (error as Error).message });
      }
    }),
};
