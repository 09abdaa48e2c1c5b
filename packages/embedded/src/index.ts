export { type PostgresOptions, type RunningPostgres, startPostgres } from './postgres.ts';
export { findRedisServer, type RedisOptions, type RunningRedis, startRedis } from './redis.ts';
export {
  findFreePort,
  findProgram,
  ServerFailed,
  type ServerFailedCode,
  selectServerAccount,
  serverEnvironment,
  spawnServer,
} from './server-process.ts';
export { readStartCommand, type StartCommand } from './start-command.ts';
