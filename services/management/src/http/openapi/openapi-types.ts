/** A schema in JSON Schema 2020-12, the dialect of OpenAPI 3.1: the keywords that the document uses. */
export interface Schema {
  $ref?: string;
  type?: SchemaType | SchemaType[];
  description?: string;
  const?: string | number | boolean | null;
  enum?: readonly (string | number)[];
  default?: unknown;
  examples?: readonly unknown[];
  format?: 'date-time' | 'email' | 'uri';
  pattern?: string;
  minLength?: number;
  maxLength?: number;
  minimum?: number;
  maximum?: number;
  items?: Schema;
  minItems?: number;
  maxItems?: number;
  uniqueItems?: boolean;
  properties?: Record<string, Schema>;
  required?: string[];
  additionalProperties?: Schema | boolean;
  anyOf?: Schema[];
  oneOf?: Schema[];
  discriminator?: { propertyName: string; mapping: Record<string, string> };
  contentMediaType?: string;
  contentSchema?: Schema;
}

export type SchemaType = 'array' | 'boolean' | 'integer' | 'null' | 'object' | 'string';

export interface Reference {
  $ref: string;
}

export interface Parameter {
  name: string;
  in: 'cookie' | 'header' | 'path' | 'query';
  description: string;
  required?: boolean;
  schema: Schema;
  example?: unknown;
}

export interface Header {
  description: string;
  required: boolean;
  schema: Schema;
}

export interface MediaType {
  schema: Schema;
  example?: unknown;
  examples?: Record<string, { summary: string; value: unknown }>;
}

export interface Response {
  description: string;
  headers?: Record<string, Header>;
  content?: { 'application/json': MediaType };
}

export interface RequestBody {
  description: string;
  required: boolean;
  content: { 'application/json': MediaType };
}

/** The schemes that one request needs together; several of these are alternatives. */
export type SecurityRequirement = Record<string, string[]>;

export interface Operation {
  operationId: string;
  tags: string[];
  summary: string;
  description?: string;
  parameters?: (Parameter | Reference)[];
  requestBody?: RequestBody;
  responses: Record<string, Response | Reference>;
  /** Replaces the document's own; `[]` needs no credential. */
  security?: SecurityRequirement[];
}

export type OperationMethod = 'get' | 'post' | 'put' | 'delete';

export type PathItem = {
  parameters?: (Parameter | Reference)[];
} & { [Method in OperationMethod]?: Operation };

/** By path, with its parameters in braces. A path with a slash at its end is one that the API's clients write so. */
export type Paths = Record<`/api/${string}`, PathItem>;

export interface OpenApiDocument {
  openapi: '3.1.0';
  info: { title: string; version: string; summary: string; description: string };
  servers: { url: string; description: string }[];
  security: SecurityRequirement[];
  tags: { name: string; description: string }[];
  paths: Paths;
  webhooks: Record<string, PathItem>;
  components: {
    schemas: Record<string, Schema>;
    parameters: Record<string, Parameter>;
    responses: Record<string, Response>;
    securitySchemes: Record<string, SecurityScheme>;
  };
}

export type SecurityScheme =
  | { type: 'apiKey'; in: 'header' | 'cookie'; name: string; description: string }
  | { type: 'http'; scheme: 'bearer'; description: string };
