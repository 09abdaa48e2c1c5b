import { type Paths, schemaRef } from '../http/openapi/field-schemas.ts';
import { parameter, requestBody, withIdempotencyKey } from '../http/openapi/parameters.ts';
import { BODY_FAILURES, failureWithReason, operationResponses, success } from '../http/openapi/responses.ts';
import type { SubscriptionView } from './fields.ts';
import { SUBSCRIPTION_EXAMPLE, WEBHOOK_WRITERS } from './openapi.ts';
import type { SecretRotation } from './rotation.ts';
import { SIGNATURE_KEY_EXAMPLE } from './signature-key.ts';

const tags = ['Webhooks'];

const ROTATION_EXAMPLE: SecretRotation = { started_at: '1795168900000000', ends_at: '1795255300000000' };

const ROTATED_SUBSCRIPTION_EXAMPLE: SubscriptionView = {
  ...SUBSCRIPTION_EXAMPLE,
  secret_rotation: ROTATION_EXAMPLE,
  hmac_secret: 'whsec_OTg3NjU0MzIxMDk4NzY1NDMyMTA5ODc2NTQzMjEwOTg=',
};

/** Paths of the OpenAPI document; see docs/contract.md#rotating-a-secret. */
export const rotationPaths: Paths = {
  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/rotate-secret': {
    parameters: [parameter('AccountId'), parameter('WebhookId')],
    post: withIdempotencyKey({
      operationId: 'rotateSecret',
      tags,
      summary: 'Rotate the secret',
      description: `Only this response has the new \`hmac_secret\`. For \`overlap_hours\`, \`Authorization\` has the signature by the old secret, and \`webhook-signature\` one by each; afterwards only the new secret is used, and the old one is erased. A receiver that accepts both rejects nothing at any time. With 0 hours the new secret is used at once. ${WEBHOOK_WRITERS}`,
      requestBody: {
        ...requestBody('RotationRequest', 'Length of the overlap. Optional.', {
          overlap_hours: 24,
        }),
        required: false,
      },
      responses: operationResponses(
        'account',
        {
          200: success(
            200,
            'The rotation has started; with 0 hours it has ended as well.',
            schemaRef('RotatedSubscription'),
            ROTATED_SUBSCRIPTION_EXAMPLE,
          ),
          409: failureWithReason(
            409,
            'A rotation is in progress and must be finished first. Of two concurrent rotations, one gets this response.',
            'A rotation of the secret is under way, or has just begun: finish it before the next.',
          ),
        },
        BODY_FAILURES,
      ),
    }),
  },

  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/rotate-signature-key': {
    parameters: [parameter('AccountId'), parameter('WebhookId')],
    post: withIdempotencyKey({
      operationId: 'rotateSignatureKey',
      tags,
      summary: 'Rotate the key pair',
      description: `For \`overlap_hours\`, \`webhook-signature\` has a signature by the old key and one by the new key, and both public keys are listed; afterwards only the new one is used, and the old private key is erased. ${WEBHOOK_WRITERS}`,
      requestBody: {
        ...requestBody('RotationRequest', 'Length of the overlap. Optional.', { overlap_hours: 24 }),
        required: false,
      },
      responses: operationResponses(
        'account',
        {
          200: success(
            200,
            'The rotation has started; with 0 hours it has ended as well.',
            schemaRef('Subscription'),
            {
              ...SUBSCRIPTION_EXAMPLE,
              signature_key: { ...SIGNATURE_KEY_EXAMPLE, rotation: ROTATION_EXAMPLE },
            },
          ),
          409: failureWithReason(
            409,
            'The webhook has no key pair, or a rotation is in progress and must be finished first.',
            'The webhook has no key pair: set signature_key first.',
          ),
        },
        BODY_FAILURES,
      ),
    }),
  },

  '/api/v3/accounts/{account_id}/webhooks/subscription/{webhook_id}/finish-rotation': {
    parameters: [parameter('AccountId'), parameter('WebhookId')],
    post: withIdempotencyKey({
      operationId: 'finishRotation',
      tags,
      summary: 'Finish a rotation of the secret or the key pair early',
      description: `All further attempts are signed with the new one only; the old one is erased. ${WEBHOOK_WRITERS}`,
      responses: operationResponses(
        'account',
        {
          200: success(
            200,
            'Only the new secret or key pair is in use.',
            schemaRef('Subscription'),
            SUBSCRIPTION_EXAMPLE,
          ),
          409: failureWithReason(
            409,
            'No rotation is in progress, or it has already ended.',
            'No rotation of the secret is under way.',
          ),
        },
        BODY_FAILURES,
      ),
    }),
  },

  '/.well-known/webhook-keys/{webhook_id}': {
    parameters: [parameter('WebhookId')],
    get: {
      operationId: 'getPublicKeys',
      tags: ['Received by endpoints'],
      summary: 'Get the public keys of a webhook',
      description:
        'For receivers, which know the id from the body of a delivery. May be cached for five minutes. Trust a key only for the webhook that you configured, not for any id that a request contains.',
      security: [],
      responses: operationResponses(
        'anyone',
        { 200: success(200, 'The public keys.', schemaRef('PublicKeys'), SIGNATURE_KEY_EXAMPLE) },
        [400, 404],
      ),
    },
  },
};
