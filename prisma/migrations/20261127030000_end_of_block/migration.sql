-- A new endpoint, or the activation of a subscription, ends a block at that time. Without the time of its end, deliveries that waited
-- for a day or longer expired at once (docs/contract.md#retry-after).

CREATE OR REPLACE FUNCTION "subscription_is_brought_back"() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  NEW."failing_since" := NULL;
  NEW."consecutive_failures" := 0;
  NEW."failure_told_at" := NULL;
  IF NEW."blocked_until" > now() THEN
    NEW."blocked_until" := now();
  END IF;
  IF NEW."active" THEN
    NEW."deactivate_reason" := NULL;
  END IF;
  RETURN NEW;
END
$$;
