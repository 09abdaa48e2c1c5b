-- What waits is walked through by the index, from one lane or account to the next, however much each has parked. A recursive
-- statement does it as well, but not over a log that is spread over servers: there each step is a statement of its own.

CREATE FUNCTION "lanes_with_parked"(after text, most integer) RETURNS SETOF text
LANGUAGE plpgsql AS $$
BEGIN
  FOR step IN 1..most LOOP
    SELECT d."subscription_id" INTO after FROM "deliveries" d
    WHERE d."parked_at" IS NOT NULL AND d."subscription_id" > after
    ORDER BY d."subscription_id" LIMIT 1;
    EXIT WHEN NOT FOUND;
    RETURN NEXT after;
  END LOOP;
END
$$;

CREATE FUNCTION "accounts_with_parked"(after bigint, most integer) RETURNS SETOF bigint
LANGUAGE plpgsql AS $$
BEGIN
  FOR step IN 1..most LOOP
    SELECT d."account_id" INTO after FROM "deliveries" d
    WHERE d."parked_at" IS NOT NULL AND d."account_id" > after
    ORDER BY d."account_id" LIMIT 1;
    EXIT WHEN NOT FOUND;
    RETURN NEXT after;
  END LOOP;
END
$$;

-- Whether the log has any of a subscription.
CREATE FUNCTION "has_deliveries"(account bigint, subscription text) RETURNS boolean
LANGUAGE plpgsql AS $$
BEGIN
  RETURN EXISTS (SELECT FROM "deliveries" d WHERE d."account_id" = account AND d."subscription_id" = subscription);
END
$$;
