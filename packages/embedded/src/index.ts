export { findFreePort } from './find-free-port.ts';
export { type PostgresOptions, type RunningPostgres, startPostgres } from './postgres.ts';
export { findRedisServer, type RedisOptions, type RunningRedis, startRedis } from './redis.ts';
export { ServerFailed, type ServerFailedCode } from './server-failed.ts';
