-- Events whose id is on record with other data, or carries a time outside the log, are set aside with their message.
-- Rows that are there meet the former, narrower constraint.

ALTER TABLE "quarantined_items" DROP CONSTRAINT "quarantined_items_kind_check";
ALTER TABLE "quarantined_items" ADD CONSTRAINT "quarantined_items_kind_check" CHECK ("kind" IN ('event', 'delivery', 'lane', 'recovery', 'status', 'notice', 'conflict', 'out_of_range')) NOT VALID;
