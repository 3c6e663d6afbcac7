-- Rows and indexes of checkpoint in fewer bytes. A worker of an earlier version that still runs ends when it meets this (it
-- looks for columns that have other names now): start the new ones right after it. No row is written anew; the two
-- indexes are, while the table can only be read: some ten seconds a million rows.

-- What the rows of checkpoint have in common, once. id is made of the others (store_common.c), the same wherever it is made, so
-- that no worker has to ask for it, and none remembers one that a restored database does not have. Rows are only ever added.
CREATE TABLE fermata.common (
	id             bigint PRIMARY KEY,
	suspend_topic  text NOT NULL,
	resumes_topic  text NOT NULL,
	kek_id         text NOT NULL,
	schema_sha256  bytea NOT NULL
);
ALTER TABLE fermata.checkpoint
	ADD COLUMN common bigint;
-- Of their own these have only rows of before.
ALTER TABLE fermata.checkpoint RENAME COLUMN suspend_topic TO own_suspend_topic;
ALTER TABLE fermata.checkpoint RENAME COLUMN resumes_topic TO own_resumes_topic;
ALTER TABLE fermata.checkpoint RENAME COLUMN kek_id TO own_kek_id;
ALTER TABLE fermata.checkpoint RENAME COLUMN schema_sha256 TO own_schema_sha256;
ALTER TABLE fermata.checkpoint
	DROP CONSTRAINT checkpoint_check,
	-- Not looked for in the rows that are there, which have kept a stricter one.
	ADD CONSTRAINT checkpoint_check CHECK (NOT filled OR (tenant IS NOT NULL AND session_id IS NOT NULL
		AND gate_id IS NOT NULL AND suspend_seq IS NOT NULL AND appended_at IS NOT NULL AND digest IS NOT NULL
		AND payload_day IS NOT NULL AND coalesce(common::text, own_resumes_topic) IS NOT NULL
		AND resumes_partition IS NOT NULL)) NOT VALID;

-- The line of a gate by two hashes: names are long, and who looks compares them in the row.
DROP INDEX fermata.checkpoint_line;
CREATE INDEX checkpoint_line ON fermata.checkpoint (hashtext(session_id), hashtext(gate_id), suspend_seq);
-- What came first is shown first, and looked at first by retention. The time is the broker's: records that came together
-- share an entry, and it only grows.
DROP INDEX fermata.checkpoint_time;
CREATE INDEX checkpoint_time ON fermata.checkpoint (appended_at);

-- The end of a sealed state that is larger than a page of TOAST holds pieces of: body is whole pieces then, four to a page.
ALTER TABLE fermata.payload ADD COLUMN tail bytea;
ALTER TABLE fermata.payload ALTER COLUMN tail SET STORAGE EXTERNAL;
