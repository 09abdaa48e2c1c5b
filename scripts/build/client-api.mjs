// Writes the API types that @runhook/client and the console use, from the OpenAPI document. Management must be compiled.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { openApiDocument } from '../../services/management/dist/http/openapi/document.js';

const folder = new URL('../../packages/client/src/generated/', import.meta.url);
const types = new URL('api.ts', folder);
const stamp = new URL('../../node_modules/.runhook-client-api-document', import.meta.url);

const document = openApiDocument();
const hash = createHash('sha256').update(JSON.stringify(document)).digest('hex');
// Most changes to management do not change the document.
if (!existsSync(types) || !existsSync(stamp) || readFileSync(stamp, 'utf8') !== hash) {
  const { default: openapiTS, astToString } = await import('openapi-typescript');
  const text = astToString(await openapiTS(document));
  mkdirSync(folder, { recursive: true });
  writeFileSync(types, text);
  writeFileSync(stamp, hash);
}
