import { boundedText } from '@runhook/contract';
import type { PrismaClient } from '@runhook/database/prisma';
import { Semaphore } from '@runhook/runtime';
import Joi from 'joi';
import { inActorTransaction } from '../audit/actor.ts';
import { BODY_BYTES_MAX } from '../http/body.ts';
import type { CallerEndpoint, CallerRequest } from '../http/endpoint.ts';
import {
  ConflictError,
  InvalidRequestError,
  InvalidTokenError,
  TooManyRequestsError,
  UnavailableError,
} from '../http/errors.ts';
import { parseBody } from '../http/parse-body.ts';
import { findPasswordHashById, hashPassword, passwordProblem } from '../identity/users.ts';
import type { DeviceCookies } from './device-cookies.ts';
import { requireSession, type SessionCaller } from './own-sessions.ts';
import type { PasswordCheck } from './password-check.ts';
import { SIGN_IN_LIMITS } from './routes.ts';
import { passwordCheckRequest } from './sign-in.ts';
import type { SignInLimits } from './sign-in-limits.ts';

export const CHANGE_PASSWORD = '/api/v3/profile/password';

/** Body of `PUT /api/v3/profile/password`. */
export interface PasswordFields {
  current_password: string;
  new_password: string;
}

export interface ChangedPasswordView {
  /** Number of the user's other sessions, which were ended. */
  sessions_ended: number;
}

interface Dependencies {
  prisma: PrismaClient;
  passwords: PasswordCheck;
  limits: SignInLimits;
  deviceCookies: Pick<DeviceCookies, 'find'>;
}

/**
 * Changes the password of the caller, who must know the current one, and ends the other sessions: someone else may have
 * opened one (docs/contract.md#console-sessions). Attempts count towards the limits of failed sign-ins.
 */
export function changePasswordEndpoint(deps: Dependencies): CallerEndpoint {
  // One at a time: a hash takes memory and one of four threads, and sign-ins have their own slots.
  const hashing = new Semaphore(1);
  return {
    method: 'PUT',
    path: CHANGE_PASSWORD,
    access: 'caller',
    bodyBytesMax: 2 * BODY_BYTES_MAX.signIn,
    async handle(request) {
      const caller = requireSession(request);
      const fields = parseBody(schema, request.body);
      const currentHash = await checkCurrentPassword(deps, request, caller, fields.current_password);
      await hashing.acquire();
      const newHash = await hashPassword(fields.new_password).finally(() => hashing.release());
      const { prisma } = deps;
      const sessionsEnded = await replacePassword(
        prisma,
        caller,
        { currentHash, newHash },
        request.beforeCommit,
      );
      return { code: 200, data: { sessions_ended: sessionsEnded } satisfies ChangedPasswordView };
    },
  };
}

const schema = Joi.object<PasswordFields>({
  current_password: boundedText(SIGN_IN_LIMITS.passwordCharactersMax).required(),
  new_password: Joi.string()
    .required()
    .custom((text: string, helpers) => {
      const problem = passwordProblem(text);
      return problem === null ? text : helpers.message({ custom: `{{#label}} ${problem}` });
    }),
}).required();

/** Returns the hash of the password if it is the current one; throws the error for the caller otherwise. */
async function checkCurrentPassword(
  { prisma, passwords, limits, deviceCookies }: Dependencies,
  { header, clientAddress }: CallerRequest,
  { userId }: SessionCaller,
  password: string,
): Promise<string> {
  const user = await findPasswordHashById(prisma, userId);
  if (user === null) throw new InvalidTokenError();
  const { email, passwordHash } = user;
  if (passwordHash === null) throw new ConflictError('You have no password: you sign in without one.');
  const attempt = { email, clientAddress, device: deviceCookies.find(header('cookie'), email) };
  const limit = await limits.countAttempt(attempt);
  if (limit.kind === 'rejected') throw new TooManyRequestsError(limit.retryAfterSeconds);
  const slot = await passwords.acquireSlot(passwordCheckRequest(attempt, limit.failures));
  if (slot === null) {
    await limits.refundAttempt(attempt);
    throw new UnavailableError();
  }
  try {
    if (!(await slot.isCorrect(passwordHash, password))) throw wrongPassword();
    await limits.recordSuccess(attempt);
    return passwordHash;
  } finally {
    slot.release();
  }
}

/** A 400, because a 401 would mean that the session has ended. */
function wrongPassword(): InvalidRequestError {
  const message = 'current_password is not your current password';
  return new InvalidRequestError([{ field: 'current_password', message }]);
}

/** Replaces the password if it is still the checked one, and returns the number of sessions that were ended. */
async function replacePassword(
  prisma: PrismaClient,
  { userId, session, actor }: SessionCaller,
  { currentHash, newHash }: { currentHash: string; newHash: string },
  beforeCommit: () => void,
): Promise<number> {
  const id = BigInt(userId);
  return await inActorTransaction(prisma, actor, async (transaction) => {
    const { count } = await transaction.user.updateMany({
      where: { id, passwordHash: currentHash },
      data: { passwordHash: newHash },
    });
    if (count === 0) throw new ConflictError('The password was changed by another request.');
    // A separate statement after locking the user's row: its snapshot must include sessions committed concurrently.
    const others = { userId: id, idHash: { not: session.idHash } };
    const ended = await transaction.consoleSession.deleteMany({ where: others });
    beforeCommit();
    return ended.count;
  });
}
