import type Joi from 'joi';
import { parseEnvironment } from './environment.ts';

type CamelCase<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${Lowercase<First>}${Capitalize<CamelCase<Rest>>}`
  : Lowercase<Name>;

/** `{ DATABASE_URL: string }` as the code calls it: `{ databaseUrl: string }`. */
export type SettingsOf<Environment> = {
  [Name in keyof Environment as CamelCase<Name & string>]: Environment[Name];
};

/** The settings of a process from its environment; throws an `EnvironmentError` with every problem at once. */
export function parseSettings<Environment extends object>(
  schema: Joi.ObjectSchema<Environment>,
  source?: NodeJS.ProcessEnv,
): SettingsOf<Environment> {
  const settings = Object.entries(parseEnvironment(schema, source)).map(([name, value]) => [
    name.toLowerCase().replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()),
    value,
  ]);
  return Object.fromEntries(settings) as SettingsOf<Environment>;
}
