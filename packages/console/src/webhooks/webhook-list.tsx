import type { Subscription } from '../api/types.ts';
import { useIsPhone } from '../components/page.tsx';
import { WebhookCards } from './webhook-cards.tsx';
import { WebhookTable } from './webhook-table.tsx';

export interface WebhookListProps {
  accountId: number;
  /** Null while they are loaded for the first time. */
  subscriptions: Subscription[] | null;
  /** Rows to stand in for them. */
  skeletonCount: number;
  /** Those of another page or search stand in until the right ones are there. */
  isOutdated: boolean;
  jobNames: ReadonlyMap<string, string>;
  /** Why nothing can be changed, in words; null when it can. */
  refusal: string | null;
  onActive: (subscription: Subscription, active: boolean) => void;
  onDelete: (subscription: Subscription) => void;
}

/** A table, or cards where there is no room for one. */
export function WebhookList(props: WebhookListProps) {
  const isPhone = useIsPhone();
  return isPhone ? <WebhookCards {...props} /> : <WebhookTable {...props} />;
}
