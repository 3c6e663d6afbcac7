-- The tables of Fermata. Times are microseconds since 1970 UTC (bigint), as they are in the records, so that
-- every value that Avro can carry has a place; the view fermata.gates shows them as timestamps to people.
-- The schema fermata and the table fermata.schema_version are there already (store_migrate.c).

CREATE TYPE fermata.gate_state AS ENUM
	('PENDING', 'DECIDED', 'RESUMED', 'SUPERSEDED', 'QUARANTINED', 'IN_DOUBT', 'UNCLAIMED');
CREATE TYPE fermata.verdict AS ENUM ('APPROVED', 'REJECTED', 'EXPIRED', 'CANCELLED');
CREATE TYPE fermata.risk AS ENUM ('LOW', 'MEDIUM', 'HIGH', 'CRITICAL');
CREATE TYPE fermata.on_expiry AS ENUM ('REJECT', 'APPROVE', 'HOLD');
CREATE TYPE fermata.decision_kind AS ENUM ('APPROVE', 'REJECT', 'CANCEL', 'EXPIRE');
CREATE TYPE fermata.outcome AS ENUM ('counted', 'waiting', 'refused');

-- One row joins the two halves, whichever comes first. The columns from tenant on are null until the suspend
-- event is known (filled). No index on a column that changes, and pages that are half empty: every update stays
-- HOT. What is to be done is in tables of its own (outbox, gate_outbox, expiry, unclaimed).
-- (The order of the columns is that of what they are aligned to, so that little of a row is padding; and what changes stands
-- together, for of an update that stays on its page the log has what lies between the first and the last byte that differ.
-- Tables made by earlier releases have another order, and nothing depends on it.)
CREATE TABLE fermata.checkpoint (
	checkpoint_id       uuid PRIMARY KEY,
	suspend_seq         bigint,
	suspended_at        bigint,
	appended_at         bigint,
	expires_at          bigint,

	-- what changes
	version             bigint NOT NULL DEFAULT 0,
	changed_at          bigint NOT NULL,
	decided_at          bigint,
	state               fermata.gate_state NOT NULL,
	verdict             fermata.verdict,
	approvals           integer NOT NULL DEFAULT 0,
	filled              boolean NOT NULL,
	published           boolean NOT NULL DEFAULT false,
	held                boolean NOT NULL DEFAULT false,
	from_ledger         boolean NOT NULL DEFAULT false,
	reason              text,
	ledger_decisions    uuid[],

	required_approvals  integer,
	risk                fermata.risk,
	on_expiry           fermata.on_expiry,
	plain_len           integer,
	sealed_len          integer,
	payload_day         date,
	resumes_partition   integer,
	seal_format         smallint,
	compression         smallint,
	tenant              text,
	session_id          text,
	gate_id             text,
	agent               text,
	agent_version       text,
	requested_by        text,
	title               text,
	approvers           text[],
	labels              text[], -- key, value, key, value
	digest              bytea,
	traceparent         text, -- W3C trace context of the suspend record
	tracestate          text,

	-- what is needed, besides the key, to open the payload: with seal_format, compression and the lengths
	kek_id              text,
	wrapped_key         bytea, -- null once erased
	seal_commit         bytea,
	schema_sha256       bytea,

	-- its shard: a partition of a resumes topic, fixed when the row is filled
	resumes_topic       text,

	id_text             text, -- the id as it was sent, null when that was in lower case

	CHECK (NOT filled OR (tenant IS NOT NULL AND session_id IS NOT NULL AND gate_id IS NOT NULL
		AND suspend_seq IS NOT NULL AND digest IS NOT NULL AND payload_day IS NOT NULL
		AND resumes_topic IS NOT NULL AND resumes_partition IS NOT NULL))
) WITH (fillfactor = 50);

-- The line of a gate: what a later suspend supersedes; also the way to a session by its id.
CREATE INDEX checkpoint_line ON fermata.checkpoint (session_id, tenant, gate_id, suspend_seq);

-- What people are shown first comes first. Immutable once the row is filled, so it costs no HOT update.
-- (uuid_send: bytes in the same order. With the column itself, a plan made while the table was empty looked ids up
-- in this index, all of it each time.)
CREATE INDEX checkpoint_time ON fermata.checkpoint (suspended_at, uuid_send(checkpoint_id));

-- The sealed state: written once, read once, dropped by the day.
CREATE TABLE fermata.payload (
	checkpoint_id  uuid NOT NULL,
	day            date NOT NULL,
	body           bytea NOT NULL,
	PRIMARY KEY (checkpoint_id, day)
) PARTITION BY RANGE (day);
ALTER TABLE fermata.payload ALTER COLUMN body SET STORAGE EXTERNAL;
CREATE TABLE fermata.payload_default PARTITION OF fermata.payload DEFAULT;
ALTER TABLE fermata.payload_default ALTER COLUMN body SET STORAGE EXTERNAL;

-- Every decision that came, and what became of it.
CREATE TABLE fermata.decision (
	decision_id        uuid PRIMARY KEY,
	checkpoint_id      uuid NOT NULL,
	decided_at         bigint NOT NULL,
	appended_at        bigint NOT NULL,
	"offset"           bigint NOT NULL,
	seq                bigint GENERATED ALWAYS AS IDENTITY,
	partition          integer NOT NULL,
	outcome            fermata.outcome NOT NULL,
	decision           fermata.decision_kind NOT NULL,
	edits_plain_len    integer,
	edits_format       smallint, -- sealed edits, under a key of their own
	edits_compression  smallint,
	reason             text, -- why it was refused
	issuer             text NOT NULL,
	subject            text NOT NULL,
	display            text NOT NULL,
	stated_reason      text,
	stated_session     text NOT NULL,
	source_system      text NOT NULL,
	source_ref         text NOT NULL,
	source_delivery    text NOT NULL,
	checkpoint_digest  bytea,
	record_digest      bytea NOT NULL,
	id_text            text NOT NULL, -- as it was sent
	topic              text NOT NULL,
	edits_kek_id       text,
	edits_wrapped_key  bytea,
	edits_commit       bytea,
	edits_body         bytea
);
ALTER TABLE fermata.decision ALTER COLUMN edits_body SET STORAGE EXTERNAL;
CREATE INDEX decision_checkpoint ON fermata.decision (checkpoint_id);

-- Work lists. Rows come and go quickly: they are vacuumed by the number of the dead, not by a share of the
-- table, so that a list which was long once does not stay slow.
CREATE TABLE fermata.outbox (
	checkpoint_id  uuid PRIMARY KEY,
	topic          text NOT NULL,
	partition      integer NOT NULL,
	seq            bigint GENERATED ALWAYS AS IDENTITY
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX outbox_shard ON fermata.outbox (topic, partition, seq);

CREATE TABLE fermata.gate_outbox (
	checkpoint_id  uuid PRIMARY KEY,
	topic          text NOT NULL,
	partition      integer NOT NULL,
	version        bigint NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX gate_outbox_shard ON fermata.gate_outbox (topic, partition);

CREATE TABLE fermata.expiry (
	checkpoint_id  uuid PRIMARY KEY,
	expires_at     bigint NOT NULL,
	sent_at        bigint
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);
CREATE INDEX expiry_due ON fermata.expiry (expires_at);

CREATE TABLE fermata.unclaimed (
	checkpoint_id  uuid PRIMARY KEY,
	since          bigint NOT NULL,
	decisions      integer NOT NULL -- how many wait: their sum is bounded by worker.unclaimed_max
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000);

-- Where intake stands. The last record is remembered so that a topic that was made anew is noticed.
CREATE TABLE fermata.kafka_offset (
	cluster_id      text NOT NULL,
	topic           text NOT NULL,
	partition       integer NOT NULL,
	next            bigint NOT NULL,
	last_offset     bigint,
	last_timestamp  bigint,
	last_digest     bytea,
	waits           text CHECK (waits IN ('alarm', 'registry')),
	PRIMARY KEY (cluster_id, topic, partition)
) WITH (fillfactor = 50);

-- How far each relay has read its ledger, a partition of a resumes topic.
CREATE TABLE fermata.ledger_offset (
	cluster_id     text NOT NULL,
	topic          text NOT NULL,
	partition      integer NOT NULL,
	next           bigint NOT NULL,
	doubt_before   bigint,
	routes_digest  bytea NOT NULL,
	PRIMARY KEY (cluster_id, topic, partition)
) WITH (fillfactor = 50);

-- Who works on this database, and the resumes topics that were ever published to.
CREATE TABLE fermata.installation (
	only_one      boolean PRIMARY KEY DEFAULT true CHECK (only_one),
	worker_group  text NOT NULL,
	cluster_id    text NOT NULL,
	since         bigint NOT NULL
);
CREATE TABLE fermata.resumes_topic (
	topic       text PRIMARY KEY,
	partitions  integer NOT NULL CHECK (partitions > 0)
);

-- Every schema ever seen, so that what was written with it can be read for ever.
CREATE TABLE fermata.schema_text (
	sha256       bytea PRIMARY KEY, -- of the canonical form
	fingerprint  bytea NOT NULL,    -- CRC-64-AVRO, 8 bytes little-endian
	registry_id  integer,
	text         text NOT NULL,
	seen_at      bigint NOT NULL
);

-- Microseconds as a time; what no timestamp can hold is shown as infinity, so that one odd row does not make
-- the view fail for all.
CREATE FUNCTION fermata.at(us bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
	RETURN CASE
		WHEN us < -62135596800000000 THEN '-infinity'::timestamptz
		WHEN us > 253402300799999999 THEN 'infinity'::timestamptz
		ELSE '1970-01-01 00:00:00+00'::timestamptz + us / 1000000 * interval '1 second'
			+ us % 1000000 * interval '1 microsecond'
	END;

CREATE VIEW fermata.gates AS
	SELECT checkpoint_id, state, verdict, tenant, session_id, gate_id, agent, agent_version, title, risk,
		requested_by, approvals, required_approvals, coalesce(approvers, '{}') AS approvers,
		coalesce(jsonb_object(labels), '{}') AS labels, suspend_seq, reason,
		fermata.at(suspended_at) AS suspended_at, fermata.at(decided_at) AS decided_at,
		fermata.at(expires_at) AS expires_at, fermata.at(changed_at) AS changed_at
	FROM fermata.checkpoint;

-- Makes the partition of one day; false: it is there, or rows of that day lie in the default partition already
-- and stay there. Made apart and then attached, because ATTACH waits only for those who use the default
-- partition, and CREATE TABLE ... PARTITION OF for every open insert. A worker that does not own the table
-- may call this where it is granted.
CREATE FUNCTION fermata.payload_day_make(wanted date) RETURNS boolean LANGUAGE plpgsql SECURITY DEFINER
	SET search_path = pg_catalog, pg_temp AS $$
DECLARE
	name text := 'payload_' || to_char(wanted, 'YYYYMMDD');
BEGIN
	PERFORM pg_advisory_xact_lock(1179996749, 2);
	IF to_regclass(format('fermata.%I', name)) IS NOT NULL
		OR EXISTS (SELECT FROM fermata.payload_default WHERE day = wanted) THEN
		RETURN false;
	END IF;
	EXECUTE format('CREATE TABLE fermata.%I (LIKE fermata.payload INCLUDING STORAGE INCLUDING DEFAULTS, '
		'PRIMARY KEY (checkpoint_id, day))', name);
	EXECUTE format('ALTER TABLE fermata.payload ATTACH PARTITION fermata.%I FOR VALUES FROM (%L) TO (%L)',
		name, wanted, wanted + 1);
	RETURN true;
EXCEPTION WHEN check_violation THEN
	RETURN false; -- a row came into the default partition meanwhile
END
$$;
REVOKE ALL ON FUNCTION fermata.payload_day_make(date) FROM PUBLIC;
