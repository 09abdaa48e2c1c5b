export type { ArtifactCalls, ArtifactReference } from './artifacts.ts';
export type {
  Body,
  components,
  Data,
  ListPath,
  Method,
  PathOf,
  PathParameters,
  paths,
  Query,
  RequestParts,
  Row,
  Schemas,
  SuccessEnvelope,
} from './calls.ts';
export type { Change } from './changes.ts';
export { type Client, type ClientOptions, createClient, type Page, VERSION } from './client.ts';
export { type FieldProblem, RunhookError } from './errors.ts';
