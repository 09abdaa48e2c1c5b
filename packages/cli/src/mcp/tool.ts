import type { Client } from '@runhook/client';
import { z } from 'zod';

/** A tool of the server. Its description ends with what a call changes. */
export interface Tool<Shape extends z.ZodRawShape = z.ZodRawShape> {
  name: string;
  title: string;
  description: string;
  input: Shape;
  annotations: {
    readOnlyHint: boolean;
    /** Whether a call may have effects that cannot be undone. */
    destructiveHint?: boolean;
    /** Whether a repeated call has no further effect. */
    idempotentHint?: boolean;
    /** Whether a call reaches servers of others. */
    openWorldHint: boolean;
  };
  /** Resolves with a value for JSON, without secrets. Throws what `cliError` can explain. */
  run(client: Client, input: z.output<z.ZodObject<Shape>>): Promise<unknown>;
}

export const READ_ONLY = { readOnlyHint: true, openWorldHint: false } as const;

/** Infers the type of the input. */
export function defineTool<Shape extends z.ZodRawShape>(tool: Tool<Shape>): Tool {
  return tool as unknown as Tool;
}

/** Inputs that several tools have. */
export const inputs = {
  webhook: z.string().min(1).describe('Id (wsu_…) or exact name of the webhook.'),
  deliveryId: z.string().min(1).describe('Id of the delivery (wdl_…).'),
  runId: z.int().positive().describe('Id of the run.'),
  limit: z.int().min(1).max(100).default(20).describe('Maximum number of rows.'),
};

// Without a boundary before it: in JSON, a line end before a credential is an escape that ends with a letter.
const CREDENTIAL = /(whsec|whsk|rhs|rhu)_[A-Za-z0-9+/=_-]{6,}/g;

/** Replaces credentials in a text, because endpoints and runs may write theirs into responses and logs. */
export function withoutSecrets(text: string, secrets: readonly string[]): string {
  const masked = text.replace(CREDENTIAL, '$1_[removed]');
  return secrets.reduce((rest, secret) => rest.replaceAll(secret, '[removed]'), masked);
}

/** Returns scheme and host: path and query of an endpoint are its secret for some receivers. */
export function originOf(url: string): string {
  return URL.canParse(url) ? new URL(url).origin : '';
}
