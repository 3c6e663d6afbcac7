-- What becomes of what is settled: payloads go by the day, rows when the topics have let go of their records,
-- sessions when somebody erases them. Safe while workers of version 2 run: they name the columns that they write.

-- Where the suspend record stood. Null in rows that were taken in before: those stay.
ALTER TABLE fermata.checkpoint
	ADD COLUMN suspend_topic     text,
	ADD COLUMN suspend_partition integer,
	ADD COLUMN suspend_offset    bigint;

-- Rows were purged, and every record of the partition below that offset had been taken in by then: one without a row
-- was settled and purged. Only what was appended up to that time is meant, for a topic that is made anew begins with
-- offset 0 again. The resumes topics are among them.
CREATE TABLE fermata.horizon (
	cluster_id  text NOT NULL,
	topic       text NOT NULL,
	partition   integer NOT NULL,
	below       bigint NOT NULL,
	until       bigint NOT NULL,
	PRIMARY KEY (cluster_id, topic, partition)
);

-- When the next sweep of what is settled may begin: of all workers one does it.
ALTER TABLE fermata.installation ADD COLUMN sweep_at bigint NOT NULL DEFAULT 0;

-- When it was settled; null when it is not.
CREATE FUNCTION fermata.settled_at(state fermata.gate_state, changed_at bigint, decided_at bigint)
	RETURNS bigint LANGUAGE sql IMMUTABLE PARALLEL SAFE
	RETURN CASE WHEN state IN ('RESUMED', 'SUPERSEDED') THEN greatest(changed_at, decided_at) END;

-- The days up to that one that hold payloads; own: in a partition of their own, which can be dropped whole.
CREATE FUNCTION fermata.payload_days(upto date) RETURNS TABLE (day date, own boolean)
	LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
	SELECT p.day, true FROM (
		SELECT CASE WHEN c.relname ~ '^payload_[0-9]{8}$'
			THEN to_date(right(c.relname::text, 8), 'YYYYMMDD') END AS day
		FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
		WHERE i.inhparent = 'fermata.payload'::regclass
	) p WHERE p.day <= upto
	UNION ALL
	SELECT DISTINCT d.day, false FROM fermata.payload_default d WHERE d.day <= upto
	ORDER BY 1
$$;
REVOKE ALL ON FUNCTION fermata.payload_days(date) FROM PUBLIC;

-- Drops the partition of a day when nothing in it is needed any more: what was settled before that time, was erased,
-- or lies elsewhere by now. Gives the number of payloads that went with it; null: it is not there, or something in it is
-- still needed. First nobody may write into this day any more, which nobody but a worker that is days behind wants to;
-- then it is looked through, while all else goes on; only the drop itself has to have the whole table for a moment,
-- and whoever calls this sets a lock_timeout.
CREATE FUNCTION fermata.payload_day_drop(wanted date, settled_before bigint) RETURNS bigint LANGUAGE plpgsql
	SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	name text := 'payload_' || to_char(wanted, 'YYYYMMDD');
	held bigint;
	needed bigint;
BEGIN
	PERFORM pg_advisory_xact_lock(1179996749, 2);
	IF to_regclass(format('fermata.%I', name)) IS NULL THEN
		RETURN NULL;
	END IF;
	EXECUTE format('LOCK TABLE fermata.%I IN SHARE ROW EXCLUSIVE MODE', name);
	EXECUTE format('SELECT count(*), count(*) FILTER (WHERE c.payload_day = p.day AND c.wrapped_key IS NOT NULL'
		' AND coalesce(fermata.settled_at(c.state, c.changed_at, c.decided_at) >= $1, true))'
		' FROM fermata.%I p LEFT JOIN fermata.checkpoint c ON c.checkpoint_id = ANY (ARRAY[p.checkpoint_id])',
		name) INTO held, needed USING settled_before;
	IF needed > 0 THEN
		RETURN NULL;
	END IF;
	EXECUTE format('DROP TABLE fermata.%I', name);
	RETURN held;
END
$$;
REVOKE ALL ON FUNCTION fermata.payload_day_drop(date, bigint) FROM PUBLIC;
