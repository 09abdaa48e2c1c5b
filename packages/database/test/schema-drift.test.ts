import { readFile } from 'node:fs/promises';
import { expect, test } from '@jest/globals';
import { openDatabase } from '@runhook/database';
import { withSchemaEngine } from '@runhook/database/migrate';
import { createTestDatabase, WAIT_TIMEOUT_MS } from '@runhook/testing';

const schemaPath = new URL('../../../prisma/schema.prisma', import.meta.url);

/** Returns the SQL that Prisma generates for an empty database from `schema.prisma`. */
async function sqlOfSchema(databaseUrl: string): Promise<string> {
  const content = await readFile(schemaPath, 'utf8');
  const files = [{ path: 'schema.prisma', content }];
  const work = (engine: Parameters<Parameters<typeof withSchemaEngine>[1]>[0]) =>
    engine.diff({
      from: { tag: 'empty' },
      to: { tag: 'schemaDatamodel', files },
      script: true,
      exitCode: null,
      filters: { externalTables: [], externalEnums: [] },
    });
  const { stdout } = await withSchemaEngine(databaseUrl, work, { datamodels: [['schema.prisma', content]] });
  return stdout ?? '';
}

/**
 * Reads everything that Prisma's schema can describe: columns, keys, indexes, references. It cannot describe
 * partitions, partial indexes, or expressions of indexes and generated columns.
 */
const CATALOGUE = `
  WITH tables AS (
    SELECT c.oid, c.relname FROM pg_class c
    WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition
      AND c.relname <> '_prisma_migrations'
  )
  SELECT t.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod)
    || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
    || coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') AS line
  FROM tables t
  JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum > 0 AND NOT a.attisdropped
  LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.attgenerated = ''
  UNION ALL
  SELECT t.relname || ' ' || pg_get_constraintdef(k.oid)
  FROM tables t JOIN pg_constraint k ON k.conrelid = t.oid AND k.contype IN ('p', 'f', 'u')
  UNION ALL
  SELECT replace(pg_get_indexdef(i.indexrelid), ' ONLY ', ' ')
  FROM tables t JOIN pg_index i ON i.indrelid = t.oid AND i.indpred IS NULL AND i.indexprs IS NULL
  ORDER BY 1`;

async function catalogue(databaseUrl: string): Promise<string[]> {
  const database = openDatabase({ url: databaseUrl, connectTimeoutMs: WAIT_TIMEOUT_MS });
  try {
    return (await database.pool.query<{ line: string }>(CATALOGUE)).rows.map(({ line }) => line);
  } finally {
    await database.close();
  }
}

test('the migrations create the tables that schema.prisma describes', async () => {
  const migrated = await createTestDatabase();
  const described = await createTestDatabase();
  try {
    const database = openDatabase({ url: described.url, connectTimeoutMs: WAIT_TIMEOUT_MS });
    await database.pool.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public');
    await database.pool.query(await sqlOfSchema(described.url));
    await database.close();
    const lines = await catalogue(described.url);
    expect(lines.length).toBeGreaterThan(100);
    expect(await catalogue(migrated.url)).toEqual(lines);
  } finally {
    await migrated.drop();
    await described.drop();
  }
});
