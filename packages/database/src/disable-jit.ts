import pg from 'pg';
import { withClient } from './with-client.ts';

/** `insufficient_privilege`: the role may not change its own settings. */
const INSUFFICIENT_PRIVILEGE = '42501';

/*
 * Concurrent calls change the same row of pg_db_role_setting, and PostgreSQL rejects all but one ("tuple concurrently
 * updated"), so they take a lock, which is released when the transaction of the block ends.
 */
const DISABLE_FOR_ROLE = `
  DO $$ BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('runhook.disable_jit'));
    EXECUTE format('ALTER ROLE CURRENT_USER IN DATABASE %I SET jit = off', current_database());
  END $$`;

/**
 * Disables just-in-time compilation for later sessions of this role in this database. The pools of the services disable
 * it for each connection too, but their SET does not affect connections that a pooler opens later.
 *
 * @returns false if the database does not permit the role to change its own settings
 */
export async function disableJit(connectionString: string): Promise<boolean> {
  try {
    await withClient(connectionString, (client) => client.query(DISABLE_FOR_ROLE));
    return true;
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === INSUFFICIENT_PRIVILEGE) return false;
    throw error;
  }
}
