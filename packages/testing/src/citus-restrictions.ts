import type pg from 'pg';
import { DISTRIBUTED_TABLES } from './citus-cluster.ts';
import {
  isNode,
  listOf,
  nodesOf,
  type ParseNode,
  type ParseValue,
  parseNodeTree,
  tokenOf,
} from './parse-tree.ts';

/*
 * Finds the statements that Citus rejects in the parse trees of plain PostgreSQL, because no developer runs Citus routinely. Each
 * rule was tried on Citus 13.0.3, whose message its comment quotes. `npm run prove -- citus` runs the statements on Citus itself.
 */

/** Views over distributed tables, which Citus restricts in the same way. */
const DISTRIBUTED_VIEWS = ['logged_attempts'];

/** The part of the catalog that the rules use. */
interface Catalog {
  /** Functions by oid, with their volatility: `i` immutable, `s` stable, `v` volatile. */
  functions: Map<string, { name: string; volatility: string }>;
  /** Names of the distributed tables by oid; a partition has the name of its table. */
  distributed: Map<string, string>;
}

/** Returns the reasons for which Citus would reject a statement, empty if there are none. */
export async function findCitusRestrictions(pool: pg.Pool, text: string): Promise<string[]> {
  const client = await pool.connect();
  try {
    const tree = parseNodeTree(await readParseTree(client, text));
    const catalog = await readCatalog(client, tree);
    const queries = [...nodesOf(tree)].filter(isQuery);
    const distributed = queries.filter((query) => distributedTables(query, catalog).length > 0);
    if (distributed.length === 0) return [];
    const rules = [...MODIFICATION_RULES];
    // Citus sends a statement that names one account to one worker unchanged, except for the coordinator's tables in it.
    const isSingleAccount = distributed.every((query) => filtersBySingleAccount(query, catalog));
    if (!isSingleAccount) rules.push(...SELECTION_RULES);
    if (!isSingleAccount || queries.some((query) => readsCoordinator(query, catalog)))
      rules.push(emptySelectList);
    return [...new Set(queries.flatMap((query) => rules.flatMap((rule) => rule(query, catalog) ?? [])))];
  } finally {
    client.release(true);
  }
}

/** A function with an SQL-standard body stores its parse tree; a prepared statement has the types of its parameters. */
async function readParseTree(client: pg.PoolClient, text: string): Promise<string> {
  await client.query('BEGIN');
  try {
    await client.query(`PREPARE restricted AS ${text}`);
    const { rows: prepared } = await client.query<{ types: string }>(
      `SELECT array_to_string(parameter_types, ', ') AS types FROM pg_prepared_statements WHERE name = 'restricted'`,
    );
    await client.query(
      `CREATE FUNCTION pg_temp.restricted(${prepared[0]?.types}) RETURNS void BEGIN ATOMIC ${text}\n; END`,
    );
    const { rows } = await client.query<{ body: string }>(
      `SELECT prosqlbody::text AS body FROM pg_proc WHERE oid = 'pg_temp.restricted'::regproc`,
    );
    return rows[0]?.body ?? '';
  } finally {
    await client.query('ROLLBACK');
    await client.query('DEALLOCATE ALL');
  }
}

async function readCatalog(client: pg.PoolClient, tree: readonly ParseValue[]): Promise<Catalog> {
  const oids = [...nodesOf(tree)].map(functionOf).filter((oid) => oid !== '');
  const { rows: functions } = await client.query<{ oid: string; name: string; volatility: string }>(
    `SELECT oid::text, proname AS name, provolatile AS volatility FROM pg_proc WHERE oid = ANY ($1::oid[])`,
    [oids],
  );
  const { rows: tables } = await client.query<{ oid: string; name: string }>(
    `SELECT c.oid::text, t.name FROM pg_class c
     JOIN unnest($1::text[]) AS t (name) ON c.oid::regclass::text = t.name OR pg_partition_root(c.oid)::text = t.name`,
    [[...DISTRIBUTED_TABLES, ...DISTRIBUTED_VIEWS]],
  );
  return {
    functions: new Map(functions.map(({ oid, ...rest }) => [oid, rest])),
    distributed: new Map(tables.map(({ oid, name }) => [oid, name])),
  };
}

type Rule = (query: ParseNode, catalog: Catalog) => string[] | null;

const isQuery = ({ type }: ParseNode) => type === 'QUERY';
const COMMANDS: Record<string, string> = { 1: 'SELECT', 2: 'UPDATE', 3: 'INSERT', 4: 'DELETE' };
const commandOf = (query: ParseNode) => COMMANDS[tokenOf(query, 'commandType')] ?? '';
const RELATION_RTE = '0';
const FUNCTION_RTE = '3';
const SUBQUERY_RTE = '1';
const CTE_RTE = '6';
const RECORD = '2249';

/** Returns the oid of the function that a node calls, directly or as an operator; empty if it calls none. */
function functionOf(node: ParseNode): string {
  const oid = tokenOf(node, 'funcid') || tokenOf(node, 'opfuncid');
  return oid === '0' ? '' : oid;
}

/** Returns the index of each distributed table in the range table of a query, and its columns. */
function distributedTables(
  query: ParseNode,
  { distributed }: Catalog,
): { index: string; columns: string[] }[] {
  return listOf(query, 'rtable').flatMap((entry, position) => {
    if (!distributed.has(tokenOf(entry, 'relid'))) return [];
    const [eref] = entry.fields.get('eref') ?? [];
    const [columns] = isNode(eref) ? (eref.fields.get('colnames') ?? []) : [];
    const names = Array.isArray(columns) ? columns.map((name) => String(name).replaceAll('"', '')) : [];
    return [{ index: String(position + 1), columns: names }];
  });
}

/** Whether a query, or one within it, reads a distributed table. */
function readsDistributed(query: ParseNode, catalog: Catalog): boolean {
  return [...nodesOf([query])].some((node) => isQuery(node) && distributedTables(node, catalog).length > 0);
}

/** Whether a query reads a table that is on the coordinator. */
function readsCoordinator(query: ParseNode, { distributed }: Catalog): boolean {
  return listOf(query, 'rtable').some(
    (entry) => tokenOf(entry, 'rtekind') === RELATION_RTE && !distributed.has(tokenOf(entry, 'relid')),
  );
}

/** Returns the nodes of some fields of a query, without those of its subqueries. */
function directNodes(query: ParseNode, ...fields: string[]): ParseNode[] {
  return fields.flatMap((field) => [...nodesOf(query.fields.get(field) ?? [], isQuery)]);
}

function modifiesDistributed(query: ParseNode, catalog: Catalog, ...commands: string[]): boolean {
  if (!commands.includes(commandOf(query))) return false;
  const target = tokenOf(query, 'resultRelation');
  return distributedTables(query, catalog).some(({ index }) => index === target);
}

/** Returns the nodes that call a function that is not immutable, with its name and volatility. */
function findNonImmutableCalls(nodes: readonly ParseNode[], { functions }: Catalog) {
  return nodes.flatMap((node) => {
    if (node.type === 'SQLVALUEFUNCTION') return [{ node, name: 'CURRENT_TIMESTAMP', volatility: 's' }];
    const called = functions.get(functionOf(node));
    return called === undefined || called.volatility === 'i' ? [] : [{ node, ...called }];
  });
}

/** Whether the account of each distributed table of a query is compared with a parameter or a constant. */
function filtersBySingleAccount(query: ParseNode, catalog: Catalog): boolean {
  const comparisons = directNodes(query, 'jointree').filter(
    (node) =>
      node.type === 'OPEXPR' && /^int\d*eq$/.test(catalog.functions.get(functionOf(node))?.name ?? ''),
  );
  const inserted = commandOf(query) === 'INSERT' ? tokenOf(query, 'resultRelation') : '';
  const read = distributedTables(query, catalog).filter(({ index }) => index !== inserted);
  return read.every(({ index, columns }) =>
    comparisons.some((comparison) => {
      const sides = listOf(comparison, 'args');
      const isAccount = (node: ParseNode) =>
        node.type === 'VAR' &&
        tokenOf(node, 'varno') === index &&
        columns[Number(tokenOf(node, 'varattno')) - 1] === 'account_id';
      return sides.some(isAccount) && sides.some(({ type }) => type === 'PARAM' || type === 'CONST');
    }),
  );
}

/** Citus: a column definition list is required for functions returning "record". */
const emptySelectList: Rule = (query) =>
  commandOf(query) === 'SELECT' &&
  listOf(query, 'targetList').length === 0 &&
  !isNode(query.fields.get('setOperations')?.[0])
    ? ['a sub-select has no columns: write SELECT 1 FROM']
    : null;

/** Citus: input of anonymous composite types is not implemented. It accepts a record that it does not pass between servers. */
const recordFunction: Rule = (query, catalog) => {
  const calls = directNodes(query, 'targetList', 'jointree').filter(
    (node) => node.type === 'FUNCEXPR' && tokenOf(node, 'funcresulttype') === RECORD,
  );
  return calls.map(
    (node) => `${catalog.functions.get(functionOf(node))?.name} returns a record without named columns`,
  );
};

/** Citus: functions used in UPDATE queries on distributed tables must not be VOLATILE; … in the WHERE/ON/WHEN clause. */
const volatileFunction: Rule = (query, catalog) => {
  if (!modifiesDistributed(query, catalog, 'UPDATE', 'DELETE')) return null;
  const called = findNonImmutableCalls(directNodes(query, 'targetList', 'jointree'), catalog);
  return called
    .filter(({ volatility }) => volatility === 'v')
    .map(({ name }) => `${commandOf(query)} calls ${name}, which is volatile`);
};

/** Citus: STABLE functions used in UPDATE queries cannot be called with column references. */
const stableWithColumn: Rule = (query, catalog) => {
  if (!modifiesDistributed(query, catalog, 'UPDATE', 'DELETE')) return null;
  const called = findNonImmutableCalls(directNodes(query, 'targetList', 'jointree'), catalog);
  const withColumns = called.filter(({ node, volatility }) => volatility === 's' && hasColumn(node));
  return withColumns.map(({ name }) => `${commandOf(query)} calls ${name}, which is stable, with a column`);
};

const hasColumn = (node: ParseNode) => [...nodesOf([node], isQuery)].some(({ type }) => type === 'VAR');

/** Citus: non-IMMUTABLE functions are not allowed in CASE or COALESCE statements. */
const nonImmutableInCase: Rule = (query, catalog) => {
  if (!modifiesDistributed(query, catalog, 'UPDATE', 'DELETE')) return null;
  const choices = directNodes(query, 'targetList', 'jointree').filter(({ type }) =>
    /^(CASEEXPR|CASE|COALESCEEXPR|COALESCE)$/.test(type),
  );
  return choices.flatMap((choice) =>
    findNonImmutableCalls([...nodesOf([choice], isQuery)], catalog).map(
      ({ name }) => `CASE or coalesce calls ${name}, which is not immutable`,
    ),
  );
};

/** Citus: non-IMMUTABLE functions are not allowed in the RETURNING clause. */
const nonImmutableInReturning: Rule = (query, catalog) => {
  if (!modifiesDistributed(query, catalog, 'UPDATE', 'INSERT', 'DELETE')) return null;
  return findNonImmutableCalls(directNodes(query, 'returningList'), catalog).map(
    ({ name }) => `RETURNING calls ${name}, which is not immutable`,
  );
};

/** Citus: functions used in the DO UPDATE SET clause of INSERTs on distributed tables must be marked IMMUTABLE. */
const nonImmutableOnConflict: Rule = (query, catalog) => {
  if (!modifiesDistributed(query, catalog, 'INSERT')) return null;
  return findNonImmutableCalls(directNodes(query, 'onConflict'), catalog).map(
    ({ name }) => `ON CONFLICT calls ${name}, which is not immutable`,
  );
};

/** Citus: could not run distributed query with FOR UPDATE/SHARE commands. */
const locksAcrossAccounts: Rule = (query, catalog) => {
  const locked = new Set(listOf(query, 'rowMarks').map((mark) => tokenOf(mark, 'rti')));
  const locksDistributed = distributedTables(query, catalog).some(({ index }) => locked.has(index));
  return locksDistributed && !filtersBySingleAccount(query, catalog)
    ? ['FOR UPDATE locks rows of several accounts']
    : null;
};

/** Citus: recursive CTEs are only supported when they contain a filter on the distribution column. */
const recursionAcrossAccounts: Rule = (query, catalog) => {
  const recursive = listOf(query, 'cteList').filter((cte) => tokenOf(cte, 'cterecursive') === 'true');
  const inner = [...nodesOf(recursive)].filter(
    (node) => isQuery(node) && distributedTables(node, catalog).length > 0,
  );
  return inner.every((each) => filtersBySingleAccount(each, catalog))
    ? null
    : ['a recursion reads rows of several accounts'];
};

/** Citus: cannot perform distributed planning for the given modification, … with ctid on where clause. */
const rowAddress: Rule = (query, catalog) => {
  const tables = distributedTables(query, catalog).map(({ index }) => index);
  const isAddress = (node: ParseNode) =>
    node.type === 'VAR' && tokenOf(node, 'varattno') === '-1' && tables.includes(tokenOf(node, 'varno'));
  return directNodes(query, 'targetList', 'jointree').some(isAddress)
    ? ['ctid of a distributed table']
    : null;
};

/** Citus: cannot push down this subquery, … when a lateral subquery references a column. */
const lateralLimit: Rule = (query, catalog) => {
  const subqueries = listOf(query, 'rtable').filter(
    (entry) => tokenOf(entry, 'rtekind') === SUBQUERY_RTE && tokenOf(entry, 'lateral') === 'true',
  );
  const limited = [...nodesOf(subqueries)].filter(
    (node) => isQuery(node) && isNode(node.fields.get('limitCount')?.[0]),
  );
  return limited.some((each) => readsDistributed(each, catalog))
    ? ['a lateral sub-select has a LIMIT']
    : null;
};

/** Citus: correlated subqueries are not supported when the FROM clause contains a CTE or subquery / a set returning function. */
const correlatedSubquery: Rule = (query, catalog) => {
  if (commandOf(query) !== 'SELECT' || distributedTables(query, catalog).length > 0) return null;
  const kinds = listOf(query, 'rtable').map((entry) => tokenOf(entry, 'rtekind'));
  if (![FUNCTION_RTE, SUBQUERY_RTE, CTE_RTE].some((kind) => kinds.includes(kind))) return null;
  const sublinks = directNodes(query, 'targetList', 'jointree').filter(({ type }) => type === 'SUBLINK');
  const isCorrelated = (node: ParseNode) =>
    [...nodesOf([node])].some((each) => each.type === 'VAR' && tokenOf(each, 'varlevelsup') === '1');
  return sublinks.some((node) => isCorrelated(node) && readsDistributed(node, catalog))
    ? ['a correlated sub-select reads a distributed table for rows of a function, a CTE or a sub-select']
    : null;
};

/** Rules for each statement over distributed tables. */
const MODIFICATION_RULES: readonly Rule[] = [
  recordFunction,
  volatileFunction,
  stableWithColumn,
  nonImmutableInCase,
  nonImmutableInReturning,
  nonImmutableOnConflict,
  rowAddress,
];

/** Rules for a statement that does not name one account for every distributed table in it. */
const SELECTION_RULES: readonly Rule[] = [
  locksAcrossAccounts,
  recursionAcrossAccounts,
  lateralLimit,
  correlatedSubquery,
];
