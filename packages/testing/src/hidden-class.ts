import { setFlagsFromString } from 'node:v8';

/**
 * Whether V8 has one hidden class for both. Objects that are made the same way have, unless each is a copy of another with something
 * added (docs/adr/0059-no-class-of-its-own.md).
 */
export function haveSameClass(one: object, other: object): boolean {
  setFlagsFromString('--allow-natives-syntax');
  return new Function('one', 'other', 'return %HaveSameMap(one, other)')(one, other);
}
