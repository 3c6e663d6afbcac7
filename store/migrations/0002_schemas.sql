-- Schema texts by what they say, what a registry told of them, and what operators did. Safe while workers of version
-- 1 run: they touch none of these tables.

-- Texts with one canonical form may differ in defaults, aliases and logical types, which matter to who reads with
-- them: the key is the SHA-256 of the text. (Altered, not made anew: the rights that were granted on it stay.)
ALTER TABLE fermata.schema_text ADD COLUMN text_sha256 bytea;
UPDATE fermata.schema_text SET text_sha256 = sha256(convert_to(text, 'UTF8'));
ALTER TABLE fermata.schema_text
	DROP CONSTRAINT schema_text_pkey,
	DROP COLUMN registry_id,
	ADD PRIMARY KEY (text_sha256),
	ADD CHECK (octet_length(text_sha256) = 32),
	ADD CHECK (octet_length(sha256) = 32),
	ADD CHECK (octet_length(fingerprint) = 8);
CREATE INDEX schema_text_sha256 ON fermata.schema_text (sha256);
CREATE INDEX schema_text_fingerprint ON fermata.schema_text (fingerprint);

-- What a registry said, so that its outage stops nothing that was seen before.
CREATE TABLE fermata.registry_schema (
	registry     text NOT NULL, -- its address, without credentials
	fact         text NOT NULL CHECK (fact IN ('id', 'guid', 'reader', 'own')),
	ref          text NOT NULL, -- id: decimal; guid: 32 hex digits; reader: a state's schema; own: a subject
	id           integer,       -- own: under which our text is registered there
	text_sha256  bytea REFERENCES fermata.schema_text,
	seen_at      bigint NOT NULL,
	PRIMARY KEY (registry, fact, ref)
);
CREATE INDEX registry_schema_text ON fermata.registry_schema (text_sha256);

-- What operators did, in clear and without any content of a session. Rows are only ever added.
CREATE TABLE fermata.audit (
	seq            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
	at             bigint NOT NULL,
	who            text NOT NULL,
	what           text NOT NULL, -- quarantine.retry, quarantine.drop
	checkpoint_id  uuid,
	reason         text, -- as it was given
	details        text
);
CREATE INDEX audit_checkpoint ON fermata.audit (checkpoint_id, seq);

CREATE FUNCTION fermata.audit_is_kept() RETURNS trigger LANGUAGE plpgsql
	SET search_path = pg_catalog, pg_temp AS $$
BEGIN
	RAISE EXCEPTION 'fermata.audit is append-only' USING ERRCODE = 'restrict_violation';
END
$$;
CREATE TRIGGER audit_is_kept BEFORE UPDATE OR DELETE OR TRUNCATE ON fermata.audit
	FOR EACH STATEMENT EXECUTE FUNCTION fermata.audit_is_kept();
