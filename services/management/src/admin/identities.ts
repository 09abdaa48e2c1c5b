import { isRejection, type PrismaClient } from '@runhook/database/prisma';
import { findIdentityOf, linkIdentity, unlinkIdentity } from '../oidc/linking.ts';
import { AdminError, type Command, requiredOption, UsageError } from './command.ts';
import { optionValues, requireUser } from './options.ts';

export const link: Command<{ email: string; issuer: string; subject: string }> = {
  name: 'link',
  summary: 'let an existing user sign in at the identity provider',
  description:
    'Links the user to a subject of the provider. The user loses the password and the console sessions; the API key works for a day until the first sign-in at the provider. A rejected sign-in logs issuer and subject.',
  options: [
    requiredOption('--email <address>', 'e-mail address of the user', optionValues.email),
    requiredOption(
      '--issuer <url>',
      'issuer of the provider, as in its discovery document',
      optionValues.name,
    ),
    requiredOption('--subject <sub>', 'the `sub` of the user at the provider', optionValues.name),
  ],
  examples: ['user link --email ada@example.com --issuer https://login.example.com --subject 00u1a2b3'],
  check({ issuer }) {
    if (!URL.canParse(issuer)) throw new UsageError('--issuer must be a URL.');
  },
  async run({ email, ...identity }, { prisma }) {
    const user = await requireUser(prisma, { email }, '--email');
    await linkIdentity(prisma, user.id, identity).catch((error: unknown) => {
      if (!isRejection(error, 'P2002')) throw error;
      throw new AdminError('already_linked', 'The user or the subject is linked already: unlink it first.');
    });
    return {
      json: { id: user.id, email, ...identity },
      text: `User ${user.id}, ${email}, signs in at ${identity.issuer} and has no password.`,
    };
  },
};

export const unlink: Command<{ email: string }> = {
  name: 'unlink',
  summary: 'end the sign-in of a user at the identity provider',
  description:
    'Removes the link and ends the console sessions. The API key works again, and `user reset-password` sets a password.',
  options: [requiredOption('--email <address>', 'e-mail address of the user', optionValues.email)],
  examples: ['user unlink --email ada@example.com'],
  async run({ email }, { prisma }) {
    const user = await requireUser(prisma, { email }, '--email');
    if (!(await unlinkIdentity(prisma, user.id)))
      throw new AdminError('not_linked', `The user ${email} is not linked to an identity provider.`);
    return {
      json: { id: user.id, email },
      text: `User ${user.id}, ${email}, no longer signs in at the identity provider.`,
    };
  },
};

/** Rejects a password for a user who signs in at the provider, because it would outlive the access there. */
export async function requireUnlinked(
  prisma: PrismaClient,
  user: { id: number; email: string },
): Promise<void> {
  const identity = await findIdentityOf(prisma, user.id);
  if (identity !== null)
    throw new AdminError(
      'oidc_user',
      `The user ${user.email} signs in at ${identity.issuer} and has no password here. user unlink ends that.`,
    );
}
