import { type Problem, problemsOf, textWithoutNul, VALIDATION_OPTIONS } from '@runhook/contract';
import Joi from 'joi';

export const SIGN_IN_LIMITS = { emailCharactersMax: 320, passwordCharactersMax: 1_024 } as const;

/** Body of `POST /api/v3/session`. */
export interface SignInFields {
  /** In lower case, as addresses are stored. */
  email: string;
  password: string;
}

const schema = Joi.object<SignInFields>({
  email: textWithoutNul(SIGN_IN_LIMITS.emailCharactersMax).required(),
  password: Joi.string().max(SIGN_IN_LIMITS.passwordCharactersMax).required(),
});

export type SignInParsing =
  | { fields: SignInFields; problems?: never }
  | { fields?: never; problems: Problem[] };

export function parseSignIn(body: unknown): SignInParsing {
  const { value, error } = schema.required().validate(body, VALIDATION_OPTIONS);
  if (error) return { problems: problemsOf(error, 'body') };
  return { fields: { ...value, email: value.email.trim().toLowerCase() } };
}
