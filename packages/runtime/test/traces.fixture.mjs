// Opens traces as a service does and prints which modules were loaded: `node traces.fixture.mjs`.
import { createRequire } from 'node:module';
import { addLogFields, createLogger, openTraces } from '../dist/index.js';

const traces = await openTraces('fixture', { warn() {} });
const loaded = Object.keys(createRequire(import.meta.url).cache).filter((file) =>
  /@opentelemetry.(sdk|exporter|otlp|context|core|resources)/.test(file),
);
let isInLines = false;
if (traces !== null) {
  let line = '';
  const destination = {
    write(text) {
      line = text;
    },
  };
  const logger = createLogger({ service: 'fixture', level: 'info', destination });
  addLogFields(logger, traces.ids);
  await traces.withSpan('work', {}, async () => logger.info('within'));
  const within = JSON.parse(line);
  logger.info('outside');
  isInLines =
    /^[0-9a-f]{32}$/.test(within.trace_id) &&
    /^[0-9a-f]{16}$/.test(within.span_id) &&
    !line.includes('trace_id');
}
process.stdout.write(JSON.stringify({ isOn: traces !== null, loaded: loaded.length, isInLines }));
process.exit(0);
