// Writes the types that @runhook/client and the console call the API with, from the document that management serves.
// Management has to be compiled. No other script knows where the document is made.
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { openApiDocument } from '../../services/management/dist/http/openapi/document.js';

const folder = new URL('../../packages/client/src/generated/', import.meta.url);
const types = new URL('api.ts', folder);
const stamp = new URL('../../node_modules/.runhook-client-api-document', import.meta.url);

const document = openApiDocument();
const hash = createHash('sha256').update(JSON.stringify(document)).digest('hex');
// Most changes to management leave the document as it is.
if (!existsSync(types) || !existsSync(stamp) || readFileSync(stamp, 'utf8') !== hash) {
  const { default: openapiTS, astToString } = await import('openapi-typescript');
  const text = astToString(await openapiTS(document));
  mkdirSync(folder, { recursive: true });
  writeFileSync(types, text);
  writeFileSync(stamp, hash);
}
