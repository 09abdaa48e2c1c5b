const DELIVERIES_CACHED_MAX = 10_000;

/**
 * Counts how often a delivery has arrived. Delivery is at least once, and a failed attempt is repeated with the same
 * `webhook-id`: a receiver that must not process an event twice checks the count, or preferably its database.
 *
 * @returns {(eventId: string | undefined, subscriptionId: string | undefined) => number} 1 for the first arrival
 */
export function createAttemptCounter() {
  const attempts = new Map();
  return (eventId, subscriptionId) => {
    const key = `${eventId} ${subscriptionId}`;
    const attempt = (attempts.get(key) ?? 0) + 1;
    // Reinserts the key, so that the first key is the least recently used.
    attempts.delete(key);
    attempts.set(key, attempt);
    if (attempts.size > DELIVERIES_CACHED_MAX) attempts.delete(attempts.keys().next().value);
    return attempt;
  };
}
