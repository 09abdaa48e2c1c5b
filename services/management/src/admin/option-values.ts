import { integerIdFromText } from '@runhook/contract';
import Joi from 'joi';
import type { AccountReference } from '../data/administration/accounts.ts';
import type { UserReference } from '../data/administration/users.ts';
import { microsFromText } from '../domain/time-text.ts';
import { UsageError } from './errors.ts';

const NAME_CHARACTERS_MAX = 255;
const EMAIL_CHARACTERS_MAX = 254;
const EXPIRY_DAYS_MAX = 3_650;
const DAY_MS = 86_400_000;
const UNIT_MS: Record<string, number> = { m: 60_000, h: 3_600_000, d: DAY_MS, w: 7 * DAY_MS };

// Top-level domains come and go, and in-house ones exist.
const emailSchema = Joi.string()
  .email({ tlds: { allow: false } })
  .max(EMAIL_CHARACTERS_MAX);

/** What is given for an option, as the command takes it. All throw a {@link UsageError} that names the option. */
export const optionValues = {
  /** Text that PostgreSQL can hold; free otherwise. */
  name: (option: string) => (text: string) => {
    if (text.trim() === '' || [...text].length > NAME_CHARACTERS_MAX) {
      throw new UsageError(
        `${option} must be 1 to ${NAME_CHARACTERS_MAX} characters, not all of them blank.`,
      );
    }
    if (text.includes('\0')) throw new UsageError(`${option} must not contain NUL characters.`);
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
      member(option, allowed, text),

  /** Repeatable; in the order of `allowed`, each once. */
  someOf:
    <T extends string>(option: string, allowed: readonly T[]) =>
    (text: string, previous: unknown): T[] => {
      const chosen = [...(Array.isArray(previous) ? previous : []), member(option, allowed, text)];
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
      if (text.includes('@') && !text.includes('\0')) return { email: text.toLowerCase() };
      throw new UsageError(`${option} must be the id or the e-mail address of a user.`);
    },

  /** Milliseconds. */
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

function member<T extends string>(option: string, allowed: readonly T[], text: string): T {
  const found = allowed.find((value) => value === text);
  if (found === undefined) throw new UsageError(`${option} must be one of ${allowed.join(', ')}.`);
  return found;
}
