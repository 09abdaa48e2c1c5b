import {
  DEPLOYMENTS,
  hasInvalidText,
  INVALID_TEXT_PROBLEM,
  integerIdFromText,
  isLongerThan,
  PLANS,
} from '@runhook/contract';
import { LICENSES, PERMISSION_SETS } from '@runhook/database';
import type { PrismaClient } from '@runhook/database/prisma';
import Joi from 'joi';
import { microsFromText } from '../http/query-parameters.ts';
import type { AccountView } from '../identity/accounts.ts';
import {
  type AccountReference,
  findAccount,
  findUser,
  type UserReference,
} from '../identity/administration.ts';
import { flag, NotFoundError, UsageError, valueOption } from './command.ts';

const NAME_CHARACTERS_MAX = 255;
const EMAIL_CHARACTERS_MAX = 254;
const EXPIRY_DAYS_MAX = 3_650;
const DAY_MS = 86_400_000;
const UNIT_MS: Record<string, number> = { m: 60_000, h: 3_600_000, d: DAY_MS, w: 7 * DAY_MS };

// Does not check the top-level domain: the list changes, and private ones exist.
const emailSchema = Joi.string()
  .email({ tlds: { allow: false } })
  .max(EMAIL_CHARACTERS_MAX);

/** Parsers of option values. They throw a {@link UsageError} that names the option. */
export const optionValues = {
  /** Accepts 1 to 255 characters, not all blank, that meet docs/contract.md#text. */
  name: (option: string) => (text: string) => {
    if (text.trim() === '' || isLongerThan(text, NAME_CHARACTERS_MAX)) {
      throw new UsageError(
        `${option} must be 1 to ${NAME_CHARACTERS_MAX} characters, not all of them blank.`,
      );
    }
    if (hasInvalidText(text)) throw new UsageError(`${option} ${INVALID_TEXT_PROBLEM}.`);
    return text;
  },

  email: (option: string) => (text: string) => {
    if (emailSchema.validate(text).error) {
      throw new UsageError(
        `${option} must be an e-mail address of at most ${EMAIL_CHARACTERS_MAX} characters.`,
      );
    }
    return text.toLowerCase();
  },

  oneOf:
    <T extends string>(option: string, allowed: readonly T[]) =>
    (text: string): T =>
      parseMember(option, allowed, text),

  /** Repeatable; returns each value once, in the order of `allowed`. */
  someOf:
    <T extends string>(option: string, allowed: readonly T[]) =>
    (text: string, previous: unknown): T[] => {
      const chosen = [...(Array.isArray(previous) ? previous : []), parseMember(option, allowed, text)];
      return allowed.filter((value) => chosen.includes(value));
    },

  id: (option: string) => (text: string) => {
    const id = integerIdFromText(text);
    if (id === null) throw new UsageError(`${option} must be an id: a whole number from 1.`);
    return id;
  },

  account:
    (option: string) =>
    (text: string): AccountReference => {
      const id = integerIdFromText(text);
      if (id !== null) return { id };
      if (/^act_\w+$/.test(text)) return { identifier: text };
      throw new UsageError(`${option} must be the id or the identifier (act_…) of an account.`);
    },

  user:
    (option: string) =>
    (text: string): UserReference => {
      const id = integerIdFromText(text);
      if (id !== null) return { id };
      if (text.includes('@') && !hasInvalidText(text)) return { email: text.toLowerCase() };
      throw new UsageError(`${option} must be the id or the e-mail address of a user.`);
    },

  /** Returns milliseconds. */
  duration: (option: string) => (text: string) => {
    const [, count, unit] = /^([1-9]\d{0,7})([mhdw])$/.exec(text) ?? [];
    const durationMs = Number(count) * (UNIT_MS[unit ?? ''] ?? Number.NaN);
    if (!(durationMs <= EXPIRY_DAYS_MAX * DAY_MS)) {
      throw new UsageError(
        `${option} must be a number of minutes, hours, days or weeks (30m, 12h, 90d, 4w), ${EXPIRY_DAYS_MAX} days at most.`,
      );
    }
    return durationMs;
  },

  futureTime: (option: string) => (text: string) => {
    const micros = text.includes('-') ? microsFromText(text) : null;
    if (micros === null) {
      throw new UsageError(
        `${option} must be an ISO 8601 time with its zone (2030-01-31T12:00Z) or a day (2030-01-31).`,
      );
    }
    const time = new Date(Number(BigInt(micros) / 1000n));
    if (time.getTime() <= Date.now()) throw new UsageError(`${option} must be in the future.`);
    return time;
  },
};

function parseMember<T extends string>(option: string, allowed: readonly T[], text: string): T {
  const found = allowed.find((value) => value === text);
  if (found === undefined) throw new UsageError(`${option} must be one of ${allowed.join(', ')}.`);
  return found;
}

/** Options of several commands; each call returns new ones, since a command may make its own mandatory. */

export function planOption() {
  return valueOption('--plan <plan>', `one of ${PLANS.join(', ')}`, (option) =>
    optionValues.oneOf(option, PLANS),
  );
}

export function deploymentOption() {
  return valueOption('--deployment <deployment>', `one of ${DEPLOYMENTS.join(', ')}`, (option) =>
    optionValues.oneOf(option, DEPLOYMENTS),
  );
}

export function licenseOption(remark: string) {
  return valueOption('--license <license>', `one of ${LICENSES.join(', ')}; ${remark}`, (option) =>
    optionValues.oneOf(option, LICENSES),
  );
}

export function permissionSetOption(remark: string) {
  return valueOption('--permission-set <set>', `one of ${PERMISSION_SETS.join(', ')}; ${remark}`, (option) =>
    optionValues.someOf(option, PERMISSION_SETS),
  );
}

export function accountOption(description = 'its id or identifier (act_…)') {
  return valueOption('--account <account>', description, optionValues.account);
}

export function userOption() {
  return valueOption('--user <user>', 'id or e-mail address', optionValues.user);
}

/** Option that filters a list by a part of the name. */
export function nameFilter() {
  return valueOption('--name <part>', 'only those whose name contains this text', optionValues.name);
}

export function passwordStdinFlag() {
  return flag('--password-stdin', 'read the password from standard input instead of generating one');
}

/** Throws a {@link NotFoundError} that names the option. */
export async function resolveAccount(
  prisma: PrismaClient,
  reference: AccountReference,
): Promise<AccountView> {
  const account = await findAccount(prisma, reference);
  if (account !== null) return account;
  const [name] = Object.values(reference);
  throw new NotFoundError(`--account: there is no account ${name}.`);
}

/** Throws a {@link NotFoundError} that names the option. */
export async function requireUser(
  prisma: PrismaClient,
  reference: UserReference,
  option = '--user',
): Promise<{ id: number; email: string; name: string }> {
  const user = await findUser(prisma, reference);
  if (user !== null) return user;
  const [name] = Object.values(reference);
  throw new NotFoundError(`${option}: there is no user ${name}.`);
}
