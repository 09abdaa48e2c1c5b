import type { Deployment, Plan } from '@runhook/contract';

/** An account in the list of the caller's accounts; the id is an integer, the time ISO 8601 UTC in seconds with `Z`. */
export interface AccountView {
  id: number;
  identifier: string;
  name: string;
  plan: Plan;
  deployment: Deployment;
  created_at: string;
}
