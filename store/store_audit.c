#include "store/store_audit.h"

#include "store/store_connection.h"
#include "store/store_record.h"

static const struct statement insert_audit = {
	"recording what an operator did",
	"INSERT INTO fermata.audit (at, who, what, checkpoint_id, reason, details)"
	" VALUES ($1::bigint, $2::text, $3::text, $4::uuid, $5::text, $6::text)",
};

static const struct statement select_audits = {
	"reading what operators did",
	"SELECT a.seq, a.at, a.who, a.what, a.checkpoint_id, a.reason, a.details FROM fermata.audit a"
	" WHERE a.checkpoint_id = $1::uuid ORDER BY a.seq",
};

void store_audit_add(struct store *store, const struct audit_entry *entry)
{
	struct params *params = store_params(store);

	param_int8(params, entry->at);
	param_text(params, entry->who);
	param_text(params, entry->what);
	if (entry->has_checkpoint)
		param_uuid(params, &entry->checkpoint_id);
	else
		param_null(params);
	param_text(params, entry->reason);
	param_text(params, entry->details);
	store_send(store, &insert_audit, params, NULL);
}

struct entries {
	struct arena *arena;
	struct audit_entry *items;
	size_t len;
};

static enum fate entry_rows(void *context, const PGresult *rows, struct error *error)
{
	struct entries *entries = context;
	size_t count = (size_t)PQntuples(rows);

	entries->items = arena_array(entries->arena, count, sizeof(*entries->items));
	if (entries->items == NULL)
		return list_no_memory(error);
	for (; entries->len < count; entries->len++) {
		struct audit_entry *entry = &entries->items[entries->len];
		struct row row = row_at(rows, (int)entries->len, entries->arena);
		entry->seq = row_int8(&row);
		entry->at = row_int8(&row);
		entry->who = row_text_or_empty(&row);
		entry->what = row_text_or_empty(&row);
		entry->has_checkpoint = true;
		entry->checkpoint_id = row_uuid(&row);
		entry->reason = row_text(&row);
		entry->details = row_text(&row);
		enum fate fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

enum fate store_audits(struct store *store, const struct uuid *checkpoint_id, struct arena *arena,
                       struct audit_entry **ret_entries, size_t *ret_len, struct error *error)
{
	struct entries entries = { .arena = arena };
	enum fate fate = transaction_begin(store, TRANSACTION_READ, error);

	*ret_entries = NULL;
	*ret_len = 0;
	if (fate != FATE_OK)
		return fate;
	struct params *params = store_params(store);
	param_uuid(params, checkpoint_id);
	store_send(store, &select_audits, params, &(struct answer){ .rows = entry_rows, .context = &entries });
	fate = transaction_finish(store, error);
	if (fate != FATE_OK)
		return fate;
	*ret_entries = entries.items;
	*ret_len = entries.len;
	return FATE_OK;
}
