/*
 * check_pending.c - `fermata schema check --pending`: every checkpoint that waits is opened, and what would be
 * loaded out of it is read under the new schema, as the relay will do it. Nothing is written, and nothing of the
 * plaintext is shown.
 */
#include "cli/checking.h"
#include "cli/find.h"
#include "cli/opened.h"
#include "cli/pending_tally.h"
#include "cli/schemas.h"
#include "schemas/catalog.h"
#include "schemas/fingerprint.h"

#include <string.h>

#define PAGE_BYTES  ((size_t)64 << 20)
#define LOT_ROWS    128
#define LOT_BYTES   ((size_t)8 << 20) /* of what is in them, in clear; or one row */
#define ARENA_BYTES ((size_t)1 << 30)

struct pending {
	struct checking *checking;
	struct store *store;
	struct vault *vault;
	struct schemas schemas;
	struct state_reader *reader;
	bool envelope; /* the file is the schema of what is sealed, and not of a state in it */
	/* The schema of the envelope that was looked at last: */
	uint8_t sha256[32];
	struct view text;
	uint64_t fingerprint;
	struct arena *pages;
	struct checkpoint *lot[LOT_ROWS]; /* rows whose bodies are loaded in one go */
	size_t lot_len, lot_bytes;
	struct arena *rows;   /* of the lot, and its sealed bodies */
	struct arena *opened; /* of one row; wiped by its reset */
	struct pending_tally tally;
	enum fate fate; /* what ended it all */
	struct error *error;
};

/* What came of one row. */
struct judged {
	enum loaded loaded;
	char fingerprint[FINGERPRINT_HEX_LEN + 1]; /* what it was written with; "": not known */
	bool opened;
};

/* ---- one row ---- */

/* in under the file's schema. text: the writer's, where it is known to us; else whoever has it is asked. */
static enum fate migrate(struct pending *pending, const struct app_state *in, struct view text,
                         struct judged *judged, struct error *error)
{
	struct catalog *catalog = supply_catalog(pending->schemas.supply);
	struct app_state out;
	struct schema_want want;
	unsigned tries = 0;
	enum fate fate;
	bool again;

	do {
		fate = state_migrate_to(catalog, pending->reader, in, pending->opened, &out, &want, error);
		again = fate == FATE_RETRY && want.kind != WANT_NOTHING;
		if (again && !view_is_null(text) && tries++ == 0)
			again = catalog_learn(catalog, &want, text, error) == FATE_OK;
		else if (again)
			again = schemas_more_of(&pending->schemas, &want, &tries, &fate, error);
	} while (again);
	if (fate == FATE_OK && in->encoding == ENCODING_JSON)
		judged->loaded = LOADED_JSON;
	else if (fate == FATE_OK)
		judged->loaded = view_equal(out.fingerprint, in->fingerprint) ? LOADED_UNCHANGED : LOADED_MIGRATED;
	return fate;
}

/* The text of the envelope's schema, and its fingerprint; those of the row before it are likely to be the same. */
static enum fate find_envelope(struct pending *pending, const uint8_t sha256[32], struct error *error)
{
	uint8_t same[32];

	if (!view_is_null(pending->text) && memcmp(pending->sha256, sha256, 32) == 0)
		return FATE_OK;
	codec_schema_sha256(RECORD_SUSPEND, same);
	pending->text = codec_schema_text(RECORD_SUSPEND);
	if (memcmp(same, sha256, 32) != 0 &&
	    !catalog_text(supply_catalog(pending->schemas.supply), sha256, &pending->text)) {
		pending->text = VIEW_NULL;
		return error_set(error, FATE_REJECT, ERR_UNKNOWN_SCHEMA,
		                 "nobody has the schema of this SuspendEvent");
	}
	memcpy(pending->sha256, sha256, 32);
	return catalog_identify(pending->text, &pending->fingerprint, same, error);
}

/* What is sealed, as if it were a state. */
static enum fate judge_envelope(struct pending *pending, const struct checkpoint *row, struct view sealed,
                                struct judged *judged, struct error *error)
{
	uint8_t fingerprint[8];
	struct view ignored;
	enum fate fate = opened_today(&pending->schemas, row, sealed, &ignored, error);

	/* Whether today's program reads it is not asked; it is only that the schema is known now. */
	if (fate == FATE_OK || fate == FATE_REJECT)
		fate = find_envelope(pending, row->sealed.schema_sha256, error);
	if (fate != FATE_OK)
		return fate;
	fingerprint_hex(pending->fingerprint, judged->fingerprint);
	fingerprint_bytes(pending->fingerprint, fingerprint);
	struct app_state in = { .present = true,
		                    .schema = view_of(codec_record_name(RECORD_SUSPEND)),
		                    .encoding = ENCODING_AVRO,
		                    .fingerprint = { fingerprint, sizeof(fingerprint) },
		                    .body = sealed };
	return migrate(pending, &in, pending->text, judged, error);
}

/* Is it the file's schema that states of that name are read with? A schema without a name is called as its file. */
static bool is_called(const struct checking *checking, struct view name)
{
	const struct schema_type *root = checking->file.schema->root;
	const char *slash = strrchr(checking->file.path, '/');
	const char *base = slash != NULL ? slash + 1 : checking->file.path;
	size_t len = strlen(base);

	if (root->name != NULL)
		return schema_is_called(root, name);
	len -= len > 5 && strcmp(base + len - 5, ".avsc") == 0 ? 5 : 0;
	return view_equal(name, (struct view){ (const uint8_t *)base, len });
}

static enum fate judge_state(struct pending *pending, const struct checkpoint *row, struct view sealed,
                             struct judged *judged, struct error *error)
{
	struct app_state state;
	struct guarded_body guarded;
	struct view body;
	enum fate fate = opened_today(&pending->schemas, row, sealed, &body, error);

	if (fate == FATE_OK)
		fate = codec_guard_suspend_body(body, &guarded, error);
	if (fate != FATE_OK)
		return fate;
	codec_read_state(&guarded, &state);
	judged->opened = true;
	if (!state.present || !is_called(pending->checking, state.schema)) {
		judged->loaded = state.present ? LOADED_OTHER : LOADED_WITHOUT;
		return FATE_OK;
	}
	if (state.fingerprint.len == 8)
		fingerprint_hex(fingerprint_of_bytes(state.fingerprint.data), judged->fingerprint);
	return migrate(pending, &state, VIEW_NULL, judged, error);
}

static enum fate judge(struct pending *pending, const struct checkpoint *row, struct judged *judged,
                       struct error *error)
{
	struct view sealed;
	enum fate fate = opened_unseal(pending->vault, row, pending->opened, &sealed, error);

	if (fate != FATE_OK)
		return fate == FATE_REJECT ? error_wrap(error, "it cannot be opened") : fate;
	if (!pending->envelope)
		return judge_state(pending, row, sealed, judged, error);
	judged->opened = true;
	return judge_envelope(pending, row, sealed, judged, error);
}

/* ---- all of them ---- */

static enum fate judge_one(struct pending *pending, const struct checkpoint *row, struct error *error)
{
	struct judged judged = { .loaded = LOADED_NOT };
	struct error why = { .fate = FATE_OK };
	enum fate fate = judge(pending, row, &judged, &why);

	arena_reset(pending->opened);
	if (fate == FATE_OK) {
		tally_one(&pending->tally, judged.loaded);
		return FATE_OK;
	}
	if (fate != FATE_REJECT) {
		*error = why;
		return fate;
	}
	pending->tally.unopened += judged.opened ? 0 : 1;
	return tally_not(&pending->tally, pending->checking, row, judged.fingerprint, &why, error);
}

static enum fate judge_lot(struct pending *pending, struct error *error)
{
	enum fate fate = store_payloads(pending->store, pending->lot, pending->lot_len, pending->rows, error);

	for (size_t i = 0; i < pending->lot_len && fate == FATE_OK; i++)
		fate = judge_one(pending, pending->lot[i], error);
	pending->lot_len = pending->lot_bytes = 0;
	arena_reset(pending->rows);
	return fate;
}

static bool take(void *context, const struct checkpoint *row)
{
	struct pending *pending = context;
	struct checkpoint *copy = checkpoint_copy(row, pending->rows);

	if (copy == NULL) {
		pending->fate =
			error_set(pending->error, FATE_RETRY, ERR_MEMORY, "no memory for rows of the database");
		return false;
	}
	pending->lot[pending->lot_len++] = copy;
	pending->lot_bytes += copy->sealed.plain_len;
	if (pending->lot_len == LOT_ROWS || pending->lot_bytes >= LOT_BYTES)
		pending->fate = judge_lot(pending, pending->error);
	return pending->fate == FATE_OK;
}

static enum fate open_all(struct pending *pending, struct error *error)
{
	const struct cli *cli = pending->checking->cli;
	const struct view suspend = view_of(codec_record_name(RECORD_SUSPEND));
	enum fate fate;

	pending->envelope = schema_is_called(pending->checking->file.schema->root, suspend);
	pending->pages = arena_new(PAGE_BYTES);
	pending->rows = arena_new(ARENA_BYTES);
	pending->opened = arena_new(ARENA_BYTES);
	if (pending->pages == NULL || pending->rows == NULL || pending->opened == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for rows of the database");
	fate = state_reader_new(&pending->reader, buffer_view(&pending->checking->file.text), error);
	if (fate == FATE_OK)
		fate = connect_vault(cli, &pending->vault, error);
	if (fate == FATE_OK)
		fate = connect_store(cli, &pending->store, error);
	if (fate == FATE_OK)
		fate = schemas_open(cli, pending->store, &pending->schemas, error);
	return fate;
}

static void close_all(struct pending *pending)
{
	schemas_close(&pending->schemas);
	store_close(pending->store);
	vault_close(pending->vault);
	state_reader_free(pending->reader);
	arena_free(pending->opened);
	arena_free(pending->rows);
	arena_free(pending->pages);
	tally_done(&pending->tally);
}

enum fate check_pending(struct checking *checking, struct error *error)
{
	struct pending pending = { .checking = checking, .error = error };
	const struct checkpoint_filter waiting = { .waiting = true, .limit = SIZE_MAX };

	tally_init(&pending.tally);
	enum fate fate = open_all(&pending, error);
	if (fate == FATE_OK)
		fate = store_checkpoints(pending.store, &waiting, pending.pages, take, &pending, error);
	if (fate == FATE_OK)
		fate = pending.fate;
	if (fate == FATE_OK)
		fate = judge_lot(&pending, error);
	if (fate == FATE_OK)
		fate = tally_say(&pending.tally, checking, error);
	checking->wrong += pending.tally.counts[LOADED_NOT] > 0 ? 1 : 0;
	close_all(&pending);
	return fate;
}
