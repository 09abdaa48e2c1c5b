// Writes the types that @runhook/client and the console call the API with, from the document that management serves.
// Management has to be compiled. No other script knows where the document is made.
import { mkdirSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import openapiTS, { astToString } from 'openapi-typescript';
import { openApiDocument } from '../../services/management/dist/http/openapi/document.js';

const folder = new URL('../../packages/client/src/generated/', import.meta.url);

const types = await openapiTS(openApiDocument());
mkdirSync(folder, { recursive: true });
writeFileSync(fileURLToPath(new URL('api.ts', folder)), astToString(types));
