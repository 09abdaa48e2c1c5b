/** Artifacts as dbt writes them, of a project with two models, one of which fails if the run does. */

export interface CommandResult {
  runId: number;
  command: string;
  isFailure: boolean;
}

const VERSION = '1.10.0';
const MODELS = ['a', 'b'] as const;

function node(name: (typeof MODELS)[number]) {
  const parents = name === 'b' ? ['model.warehouse.a'] : [];
  return {
    unique_id: `model.warehouse.${name}`,
    name,
    alias: name,
    resource_type: 'model',
    package_name: 'warehouse',
    path: `${name}.sql`,
    original_file_path: `models/${name}.sql`,
    fqn: ['warehouse', name],
    database: 'analytics',
    schema: 'public',
    relation_name: `"analytics"."public"."${name}"`,
    language: 'sql',
    raw_code: 'select 1',
    description: '',
    checksum: { name: 'sha256', checksum: name.repeat(64) },
    config: { materialized: 'table', enabled: true, schema: null, tags: [], meta: {}, group: null },
    depends_on: { macros: [], nodes: parents },
    refs: parents.map(() => ({ name: 'a', package: null, version: null })),
    sources: [],
    metrics: [],
    columns: {},
    tags: [],
    meta: {},
    docs: { show: true },
    created_at: 1_764_000_000,
  };
}

function metadata({ runId }: CommandResult, kind: string, version: number) {
  return {
    dbt_schema_version: `https://schemas.getdbt.com/dbt/${kind}/v${version}.json`,
    dbt_version: VERSION,
    generated_at: new Date().toISOString(),
    invocation_id: 'b3b1c2c8-0d0a-4a4e-9d0f-5f8f1f3c1a11',
    // dbt writes the variables DBT_ENV_CUSTOM_ENV_… of its process here.
    env: { DBT_CLOUD_RUN_ID: String(runId) },
    project_name: 'warehouse',
    project_id: 'b3b1c2c80d0a4a4e9d0f5f8f1f3c1a11',
    adapter_type: 'postgres',
  };
}

/** Returns the files of a command by path; `dbt parse` has no results. */
export function artifactsOf(result: CommandResult): Map<string, string> {
  const files = new Map([['manifest.json', JSON.stringify(manifest(result))]]);
  if (result.command.startsWith('dbt parse')) return files;
  const catalog = { metadata: metadata(result, 'catalog', 1), nodes: {}, sources: {}, errors: null };
  files.set('run_results.json', JSON.stringify(runResults(result)));
  files.set('catalog.json', JSON.stringify(catalog));
  for (const name of MODELS) files.set(`compiled/warehouse/models/${name}.sql`, 'select 1');
  return files;
}

function manifest(result: CommandResult) {
  const nodes = Object.fromEntries(MODELS.map((name) => [`model.warehouse.${name}`, node(name)]));
  const none = Object.fromEntries(
    [
      ...['sources', 'macros', 'docs', 'exposures', 'metrics', 'groups', 'selectors', 'disabled'],
      ...['semantic_models', 'saved_queries', 'unit_tests', 'group_map'],
    ].map((name) => [name, {}]),
  );
  return {
    metadata: metadata(result, 'manifest', 12),
    nodes,
    ...none,
    parent_map: { 'model.warehouse.a': [], 'model.warehouse.b': ['model.warehouse.a'] },
    child_map: { 'model.warehouse.a': ['model.warehouse.b'], 'model.warehouse.b': [] },
  };
}

function runResults(result: CommandResult) {
  const now = new Date().toISOString();
  return {
    metadata: metadata(result, 'run-results', 6),
    args: { which: result.command.split(' ')[1], invocation_command: result.command },
    elapsed_time: 0.2,
    results: MODELS.map((name) => ({
      unique_id: `model.warehouse.${name}`,
      status: result.isFailure && name === 'b' ? 'error' : 'success',
      message: result.isFailure && name === 'b' ? 'column "c" does not exist' : 'SELECT 1',
      failures: null,
      thread_id: 'Thread-1',
      execution_time: 0.1,
      timing: ['compile', 'execute'].map((step) => ({ name: step, started_at: now, completed_at: now })),
      adapter_response: { rows_affected: 1 },
      compiled: true,
      compiled_code: 'select 1',
      relation_name: `"analytics"."public"."${name}"`,
    })),
  };
}
