import type { Schema } from './openapi-types.ts';
import { deliverySchemas } from './schemas/deliveries.ts';
import { envelopeSchemas } from './schemas/envelope.ts';
import { identitySchemas } from './schemas/identity.ts';
import { jobSchemas } from './schemas/jobs.ts';
import { payloadSchemas } from './schemas/payloads.ts';
import { recoverySchemas } from './schemas/recoveries.ts';
import { runSchemas } from './schemas/runs.ts';
import { statisticsSchemas } from './schemas/statistics.ts';
import { subscriptionSchemas } from './schemas/subscriptions.ts';

/** Every schema that has a name. */
export const SCHEMAS: Record<string, Schema> = {
  ...subscriptionSchemas,
  ...deliverySchemas,
  ...recoverySchemas,
  ...statisticsSchemas,
  ...jobSchemas,
  ...runSchemas,
  ...identitySchemas,
  ...payloadSchemas,
  ...envelopeSchemas,
};
