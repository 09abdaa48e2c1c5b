/** Options of a triggered run, as `POST …/jobs/{id}/run/` accepts and a run's `trigger` shows them. */
export interface TriggerOptions {
  cause?: string;
  git_sha?: string;
  git_branch?: string;
  schema_override?: string;
  dbt_version_override?: string;
  threads_override?: number;
  target_name_override?: string;
  generate_docs_override?: boolean;
  timeout_seconds_override?: number;
  steps_override?: string[];
  github_pull_request_id?: number;
  gitlab_merge_request_id?: number;
  azure_pull_request_id?: number;
}

/** All options, unset. A run that was only reported has these. */
export const NO_TRIGGER_OPTIONS: { readonly [Option in Exclude<keyof TriggerOptions, 'cause'>]: null } = {
  git_branch: null,
  git_sha: null,
  azure_pull_request_id: null,
  github_pull_request_id: null,
  gitlab_merge_request_id: null,
  schema_override: null,
  dbt_version_override: null,
  threads_override: null,
  target_name_override: null,
  generate_docs_override: null,
  timeout_seconds_override: null,
  steps_override: null,
};
