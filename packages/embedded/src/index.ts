export { type PostgresOptions, type RunningPostgres, startPostgres } from './postgres.ts';
export { findRedisServer, type RedisOptions, type RunningRedis, startRedis } from './redis.ts';
export { findFreePort, ServerFailed, type ServerFailedCode } from './server-process.ts';
export { type StartCommand, startCommand } from './start-command.ts';
