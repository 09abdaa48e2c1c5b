export const SUBSCRIPTIONS_PATH = '/api/v3/accounts/:account_id/webhooks/subscriptions';
export const SUBSCRIPTION_PATH = '/api/v3/accounts/:account_id/webhooks/subscription/:webhook_id';
