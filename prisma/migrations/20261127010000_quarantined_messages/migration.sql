-- Events whose id is on record with other data, or carries a time outside the log, are set aside with their message.

ALTER TABLE "quarantined_items" DROP CONSTRAINT "quarantined_items_kind_check";
ALTER TABLE "quarantined_items" ADD CONSTRAINT "quarantined_items_kind_check" CHECK ("kind" IN ('event', 'delivery', 'lane', 'recovery', 'status', 'notice', 'conflict', 'out_of_range')) NOT VALID;
ALTER TABLE "quarantined_items" VALIDATE CONSTRAINT "quarantined_items_kind_check";
