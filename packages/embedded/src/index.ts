export { type PostgresOptions, type RunningPostgres, startPostgres } from './postgres.ts';
export { findRedisServer, type RedisOptions, type RunningRedis, startRedis } from './redis.ts';
export {
  findFreePort,
  findProgram,
  ServerFailed,
  type ServerFailedCode,
  serverAccount,
  serverEnvironment,
  spawnServer,
} from './server-process.ts';
export { type StartCommand, startCommand } from './start-command.ts';
