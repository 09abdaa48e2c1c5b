/**
 * A filter of Prisma Client for a column that contains the text, whatever the case. Prisma hands the text to ILIKE as it
 * is, in which `%` and `_` mean something; here they are characters like any other.
 */
export function containing(text: string): { contains: string; mode: 'insensitive' } {
  return { contains: text.replaceAll(/[\\%_]/g, '\\$&'), mode: 'insensitive' };
}
