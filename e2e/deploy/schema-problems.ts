import { readFileSync } from 'node:fs';
import { Ajv, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { Manifest } from './manifests.ts';

function readSchema(name: string) {
  return JSON.parse(readFileSync(new URL(`schemas/${name}`, import.meta.url), 'utf8'));
}

const kubernetes = readSchema('kubernetes.json') as {
  kinds: Record<string, string>;
  definitions: Record<string, object>;
};
const ajv = new Ajv({ allErrors: true, strict: false, validateFormats: false });
// All kinds share one schema, so that common definitions are compiled once.
ajv.addSchema({ $id: 'kubernetes', definitions: kubernetes.definitions });

/** Returns a function that compiles on its first call, because a test file uses few of the schemas. */
function compileOnDemand(compile: () => ValidateFunction): () => ValidateFunction {
  let validate: ValidateFunction | undefined;
  return () => {
    validate ??= compile();
    return validate;
  };
}

/** Returns the errors of a strict API server for the manifest, one line each. */
export function manifestProblems(manifest: Manifest): string[] {
  const kind = `${manifest.apiVersion} ${manifest.kind}`;
  const definition = kubernetes.kinds[kind];
  if (definition === undefined) return [`${kind}: no schema here`];
  const validate = ajv.getSchema(`kubernetes#/definitions/${definition}`) as ValidateFunction;
  return listProblems(validate, manifest).map((problem) => `${kind} ${manifest.metadata?.name}${problem}`);
}

const validateCompose = compileOnDemand(() => {
  const compose = new Ajv2020({ allErrors: true, strict: false });
  addFormats.default(compose as never);
  return compose.compile(readSchema('compose-spec.json'));
});

export function composeProblems(file: unknown): string[] {
  return listProblems(validateCompose(), file);
}

const validateWorkflow = compileOnDemand(() => ajv.compile(readSchema('github-workflow.json')));
const validateIssueForm = compileOnDemand(() => ajv.compile(readSchema('github-issue-forms.json')));

export function workflowProblems(file: unknown): string[] {
  return listProblems(validateWorkflow(), file);
}

export function issueFormProblems(file: unknown): string[] {
  return listProblems(validateIssueForm(), file);
}

function listProblems(validate: ValidateFunction, value: unknown): string[] {
  if (validate(value)) return [];
  return (validate.errors ?? []).map(
    ({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`,
  );
}
