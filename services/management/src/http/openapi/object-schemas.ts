import type { Schema } from './openapi-types.ts';

type OptionalKeys<T> = {
  [Key in keyof T]-?: Partial<Pick<T, Key>> extends Pick<T, Key> ? Key : never;
}[keyof T];

/** A schema for every field of `T`: a field that is added to an answer does not compile until it is described. */
export type PropertiesOf<T> = { [Key in keyof T]-?: Schema };

/**
 * An object of an answer. It has these fields and no others, so that a test that holds an answer against it fails on a
 * field too many or too few. @param optional the fields that may be absent; null is no absence
 */
export function answerObject<T extends object>(
  description: string,
  properties: PropertiesOf<T>,
  optional: readonly OptionalKeys<T>[] = [],
): Schema {
  const required = (Object.keys(properties) as (keyof T)[]).filter(
    (key) => !optional.includes(key as OptionalKeys<T>),
  ) as string[];
  return {
    type: 'object',
    description,
    properties: { ...properties },
    required,
    additionalProperties: false,
  };
}

/** An object of a request. Unknown fields are ignored (DESIGN, section 4, "Paths"), so they are not forbidden. */
export function requestObject<T extends object>(
  description: string,
  properties: PropertiesOf<T>,
  required: readonly (keyof T & string)[],
): Schema {
  return { type: 'object', description, properties: { ...properties }, required: [...required] };
}

/** A schema of `components`, by its name. @param description what it is in this place */
export function schemaRef(name: string, description?: string): Schema {
  const $ref = `#/components/schemas/${name}`;
  return description === undefined ? { $ref } : { $ref, description };
}
