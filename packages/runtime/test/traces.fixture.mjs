// Opens traces as a service does and says what that loaded: `node traces.fixture.mjs`.
import { createRequire } from 'node:module';
import { openTraces } from '../dist/index.js';

const traces = await openTraces('fixture', { warn() {} });
const loaded = Object.keys(createRequire(import.meta.url).cache).filter((file) =>
  /@opentelemetry.(sdk|exporter|otlp|context|core|resources)/.test(file),
);
process.stdout.write(JSON.stringify({ isOn: traces !== null, loaded: loaded.length }));
process.exit(0);
