/**
 * Maximum depth of the data of a job: more levels than any valid message has. JSON.stringify, which is recursive,
 * supports some thousand.
 */
const DEPTH_MAX = 500;

/**
 * Parses a jsonb value. BullMQ stringifies the data of each job that it reads: one deeply nested job of a publisher
 * would fail every call that reads it, and no worker could ever finish it. So objects and arrays below
 * {@link DEPTH_MAX} levels become null; fields that the contract does not name are ignored anyway.
 */
export function parseJsonb(text: string): unknown {
  const value: unknown = JSON.parse(text);
  // Each level has an opening bracket, so few brackets rule out deep nesting.
  if (countCharacter('[', text) + countCharacter('{', text) > DEPTH_MAX) truncateBelowMax(value);
  return value;
}

function countCharacter(character: string, text: string): number {
  let count = 0;
  for (let index = text.indexOf(character); index !== -1; index = text.indexOf(character, index + 1))
    count += 1;
  return count;
}

/** Replaces containers below the maximum depth by null. Iterative, because the value may exceed the stack's depth. */
function truncateBelowMax(value: unknown): void {
  let level = [value].filter(isContainer);
  for (let depth = 1; level.length > 0; depth += 1) {
    const next: Container[] = [];
    for (const container of level) {
      for (const [key, child] of Object.entries(container)) {
        if (!isContainer(child)) continue;
        if (depth === DEPTH_MAX) container[key] = null;
        else next.push(child);
      }
    }
    level = next;
  }
}

type Container = Record<string, unknown>;

function isContainer(value: unknown): value is Container {
  return typeof value === 'object' && value !== null;
}
