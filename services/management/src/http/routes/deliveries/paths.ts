import { SUBSCRIPTION_PATH } from '../subscriptions/paths.ts';

export const DELIVERIES_PATH = `${SUBSCRIPTION_PATH}/deliveries` as const;
export const DELIVERY_PATH = `${SUBSCRIPTION_PATH}/delivery/:delivery_id` as const;
