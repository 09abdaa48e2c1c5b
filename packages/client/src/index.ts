export type {
  Answer,
  Body,
  components,
  Data,
  InPath,
  ListPath,
  Method,
  PathOf,
  paths,
  Query,
  RequestParts,
  Row,
  Schemas,
} from './calls.ts';
export type { Change } from './changes.ts';
export { type Client, type ClientOptions, createClient, type Page, VERSION } from './client.ts';
export { type FieldProblem, RunhookError } from './errors.ts';
