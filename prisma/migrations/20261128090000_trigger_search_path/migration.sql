-- Functions of triggers use the tables of the schema, whatever temporary tables of the same name the caller has created: a
-- service's role could otherwise divert entries of the audit log.
DO $$
DECLARE
  function regprocedure;
BEGIN
  FOR function IN
    SELECT oid FROM pg_proc
    WHERE pronamespace = 'public'::regnamespace AND proconfig IS NULL AND prolang <> ALL (
      SELECT oid FROM pg_language WHERE lanname IN ('c', 'internal'))
      AND (prorettype = 'trigger'::regtype OR proname = 'audit')
  LOOP
    EXECUTE format('ALTER FUNCTION %s SET search_path = public, pg_temp', function);
  END LOOP;
END
$$;
