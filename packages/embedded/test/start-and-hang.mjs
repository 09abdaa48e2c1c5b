// Starts one server of the built package and waits to be killed, as the parent that leaves a server behind. Arguments:
// startPostgres or startRedis, and its options as JSON.
import { startPostgres, startRedis } from '../dist/index.js';

const [start, options] = process.argv.slice(2);
const { url, pid } = await { startPostgres, startRedis }[start](JSON.parse(options));
process.stdout.write(`${JSON.stringify({ url, pid })}\n`);
setInterval(() => undefined, 60_000);
