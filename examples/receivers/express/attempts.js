const DELIVERIES_REMEMBERED = 10_000;

/**
 * Counts how often a delivery has arrived. Delivery is at least once, and an attempt that failed comes again with the
 * same `webhook-id`: a receiver that must not do its work twice looks here, or better in its database.
 *
 * @returns {(eventId: string | undefined, subscriptionId: string | undefined) => number} 1 for the first arrival
 */
export function createAttemptCounter() {
  const attempts = new Map();
  return (eventId, subscriptionId) => {
    const key = `${eventId} ${subscriptionId}`;
    const attempt = (attempts.get(key) ?? 0) + 1;
    // Taken out and put back, so that the first key is the one not seen for longest.
    attempts.delete(key);
    attempts.set(key, attempt);
    if (attempts.size > DELIVERIES_REMEMBERED) attempts.delete(attempts.keys().next().value);
    return attempt;
  };
}
