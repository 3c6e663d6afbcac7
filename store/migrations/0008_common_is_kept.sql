-- Rows of fermata.checkpoint stand on rows of fermata.common, and no foreign key says so (it would be a look for each
-- suspend). What is taken away there leaves sessions of which nobody knows where they go on: it is refused. Safe while
-- workers of version 7 run.
CREATE FUNCTION fermata.common_is_kept() RETURNS trigger LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RAISE EXCEPTION 'fermata.common is append-only: rows of fermata.checkpoint stand on it'
		USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER common_is_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON fermata.common
	FOR EACH STATEMENT EXECUTE FUNCTION fermata.common_is_kept();
