import { Anchor } from '@mantine/core';
import { useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import { Link } from 'react-router';
import { createSubscription, webhooksKey } from '../api/subscriptions.ts';
import type { CreatedSubscription } from '../api/types.ts';
import { WriteNotice } from '../components/guarded.tsx';
import { PageHeading } from '../components/page.tsx';
import { webhooksPath } from '../paths.ts';
import { useAccount } from '../session/session.ts';
import { writeRefusal } from '../words/webhooks.ts';
import { SecretOnce } from './secret-once.tsx';
import { WebhookForm } from './webhook-form.tsx';
import { fieldsOf, NEW_WEBHOOK } from './webhook-values.ts';

/** Create New Webhook (spec, section 1), and the secret once it is saved. */
export function Component() {
  const account = useAccount();
  const client = useQueryClient();
  // Not a mutation: its cache would keep the secret for minutes.
  const [created, setCreated] = useState<CreatedSubscription | null>(null);
  if (created !== null)
    return <SecretOnce accountId={account.id} webhook={created} secret={created.hmac_secret} />;
  return (
    <>
      <PageHeading
        title="Create New Webhook"
        above={
          <Anchor component={Link} to={webhooksPath(account.id)} inherit>
            Webhooks
          </Anchor>
        }
        below={`It belongs to ${account.name}. Its secret is shown once, after saving.`}
      />
      {writeRefusal(account) !== null ? (
        <WriteNotice />
      ) : (
        <WebhookForm
          accountId={account.id}
          initial={NEW_WEBHOOK}
          submitLabel="Save"
          problemTitle="The webhook was not created"
          cancelTo={webhooksPath(account.id)}
          onSave={async (values) => {
            setCreated(await createSubscription(account.id, fieldsOf(values)));
            void client.invalidateQueries({ queryKey: webhooksKey(account.id) });
          }}
        />
      )}
    </>
  );
}
