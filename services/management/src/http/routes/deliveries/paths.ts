import { SUBSCRIPTION_PATH } from '../subscriptions/paths.ts';

export const DELIVERIES_PATH = `${SUBSCRIPTION_PATH}/deliveries` as const;
export const RECOVER_PATH = `${SUBSCRIPTION_PATH}/recover` as const;
export const RECOVERY_PATH = `${SUBSCRIPTION_PATH}/recovery/:recovery_id` as const;
export const STATISTICS_PATH = `${SUBSCRIPTION_PATH}/statistics` as const;
export const DELIVERY_PATH = `${SUBSCRIPTION_PATH}/delivery/:delivery_id` as const;
