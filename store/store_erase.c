#include "store/store_erase.h"

#include "store/store_audit.h"
#include "store/store_connection.h"
#include "store/store_record.h"

#include <string.h>

/* ---- statements ---- */

static const struct statement select_tenants = {
	"asking whose session that is",
	"SELECT DISTINCT c.tenant FROM fermata.checkpoint c WHERE hashtext(c.session_id) = hashtext($1::text) "
	"AND c.session_id = $1::text ORDER BY c.tenant",
};

/* Those that have nothing left to be erased come too: they are told of. */
static const struct statement lock_session = {
	"locking the checkpoints of a session",
	"SELECT " CHECKPOINT_COLUMNS " FROM fermata.checkpoint c" CHECKPOINT_COMMON
	" WHERE hashtext(c.session_id) = hashtext($1::text) AND c.session_id = $1::text AND c.tenant = $2::text "
	"AND c.checkpoint_id >= $3::uuid"
	" ORDER BY c.checkpoint_id LIMIT $4::integer FOR UPDATE OF c",
};

static const struct statement read_session = {
	"reading the checkpoints of a session",
	"SELECT " CHECKPOINT_COLUMNS " FROM fermata.checkpoint c" CHECKPOINT_COMMON
	" WHERE hashtext(c.session_id) = hashtext($1::text) AND c.session_id = $1::text AND c.tenant = $2::text "
	"AND c.checkpoint_id >= $3::uuid"
	" ORDER BY c.checkpoint_id LIMIT $4::integer",
};

static const struct statement erase_keys = {
	"erasing keys",
	"UPDATE fermata.checkpoint SET wrapped_key = NULL WHERE checkpoint_id = ANY ($1::uuid[])",
};

static const struct statement delete_payloads = {
	"deleting payloads of what is erased",
	"DELETE FROM fermata.payload WHERE checkpoint_id = ANY ($1::uuid[])",
};

static const struct statement erase_edits = {
	"erasing edits",
	"UPDATE fermata.decision SET edits_wrapped_key = NULL, edits_body = NULL"
	" WHERE checkpoint_id = ANY ($1::uuid[]) AND edits_format IS NOT NULL",
};

static const struct statement delete_outbox = {
	"taking out of the outbox what is erased",
	"DELETE FROM fermata.outbox WHERE checkpoint_id = ANY ($1::uuid[])",
};

/* ---- whose ---- */

struct texts {
	struct arena *arena;
	struct view *items;
	size_t len;
	size_t cap;
};

static enum fate text_rows(void *context, const PGresult *rows, struct error *error)
{
	struct texts *list = context;

	for (int i = 0; i < PQntuples(rows); i++) {
		struct view *items = list_room(list->arena, list->items, list->len, &list->cap, sizeof(*items));
		if (items == NULL)
			return list_no_memory(error);
		list->items = items;
		struct row row = row_at(rows, i, list->arena);
		items[list->len++] = row_text_or_empty(&row);
		enum fate fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

enum fate store_session_tenants(struct store *store, struct view session_id, struct arena *arena,
                                struct view **ret_tenants, size_t *ret_len, struct error *error)
{
	struct texts list = { .arena = arena };
	enum fate fate = transaction_begin(store, TRANSACTION_READ, error);

	*ret_tenants = NULL;
	*ret_len = 0;
	if (fate != FATE_OK)
		return fate;
	struct params *params = store_params(store);
	param_text(params, session_id);
	store_send(store, &select_tenants, params, &(struct answer){ .rows = text_rows, .context = &list });
	fate = transaction_finish(store, error);
	if (fate != FATE_OK)
		return fate;
	*ret_tenants = list.items;
	*ret_len = list.len;
	return FATE_OK;
}

/* ---- what becomes of a row ---- */

static enum fate settle(struct checkpoint *row, const struct erase_page *page, struct arena *arena,
                        struct error *error)
{
	bool why = page->reason.len > 0;
	char *reason = arena_printf(arena, "erased by %.*s%s%.*s", (int)page->who.len,
	                            (const char *)page->who.data, why ? ": " : "",
	                            why ? (int)page->reason.len : 0, why ? (const char *)page->reason.data : "");

	if (reason == NULL)
		return list_no_memory(error);
	row->reason = view_of(reason);
	row->changed_at = page->now;
	if (!row->has_verdict) { /* nobody decided, and nobody can any more */
		row->has_verdict = true;
		row->verdict = VERDICT_CANCELLED;
		row->decided_at = page->now;
	}
	return FATE_OK;
}

static enum fate erase_row(const struct erase_page *page, struct erased *erased, struct arena *arena,
                           struct error *error)
{
	struct checkpoint *row = erased->checkpoint;

	erased->was = row->state;
	erased->was_erased = !row->sealed.has_key;
	switch (checkpoint_apply(row, EVENT_ERASE)) {
	case TRANSITION_CHANGED: {
		enum fate fate = settle(row, page, arena, error);
		if (fate != FATE_OK)
			return fate;
		break;
	}
	case TRANSITION_KEPT:
		break;
	case TRANSITION_IMPOSSIBLE: /* a row without its suspend event has no session */
		return error_set(error, FATE_FATAL, ERR_BUG, "a row of the session is %s: it was changed by hand",
		                 gate_state_name(row->state));
	}
	row->sealed.has_key = false;
	/* A relay may be publishing the next version at this moment: the tombstone is to come after that. */
	if (!erased->was_erased)
		row->version =
			checkpoint_next_version(row, page->now > row->version + 2 ? page->now : row->version + 2);
	return FATE_OK;
}

static enum fate record(struct store *store, const struct erase_page *page, const struct erased *erased,
                        struct arena *arena, struct error *error)
{
	const struct checkpoint *row = erased->checkpoint;
	char *details = arena_printf(arena, "it was %s and is %s%s%s", gate_state_name(erased->was),
	                             gate_state_name(row->state), row->has_verdict ? ", " : "",
	                             row->has_verdict ? verdict_name(row->verdict) : "");

	if (details == NULL)
		return list_no_memory(error);
	store_audit_add(store, &(struct audit_entry){ .at = page->now,
	                                              .who = page->who,
	                                              .what = view_of(AUDIT_ERASE),
	                                              .has_checkpoint = true,
	                                              .checkpoint_id = row->id,
	                                              .reason = page->reason,
	                                              .details = view_of(details) });
	return FATE_OK;
}

/* ---- the transaction ---- */

static void send_ids(struct store *store, const struct statement *statement, const struct uuid *ids,
                     size_t len)
{
	struct params *params = store_params(store);

	param_uuids(params, ids, len);
	store_send(store, statement, params, NULL);
}

/* In the one order of the tables. What was erased before is erased again: decisions may have come since. */
static enum fate write_rows(struct store *store, const struct erase_page *page, struct erase_result *result,
                            struct arena *arena, struct error *error)
{
	static const struct statement *const erasers[] = { &erase_keys, &delete_payloads, &erase_edits,
		                                               &delete_outbox };
	struct checkpoint_write *writes = arena_array(arena, result->len, sizeof(*writes));
	struct uuid *ids = arena_array(arena, result->len, sizeof(*ids));
	struct batch_write batch = { .checkpoints = writes, .notify = STORE_ALL_SHARDS };

	if (writes == NULL || ids == NULL)
		return list_no_memory(error);
	for (size_t i = 0; i < result->len; i++) {
		struct checkpoint_write write = { .checkpoint = result->items[i].checkpoint,
			                              .gate_event = true,
			                              .expiry_clear = true };
		ids[i] = result->items[i].checkpoint->id;
		if (!result->items[i].was_erased)
			writes[batch.checkpoints_len++] = write;
	}
	for (size_t i = 0; i < sizeof(erasers) / sizeof(erasers[0]); i++)
		send_ids(store, erasers[i], ids, result->len);
	for (size_t i = 0; i < result->len; i++) {
		enum fate fate = FATE_OK;
		if (!result->items[i].was_erased)
			fate = record(store, page, &result->items[i], arena, error);
		if (fate != FATE_OK)
			return fate;
	}
	enum fate fate = store_batch_write(store, &batch, error);
	return fate == FATE_OK ? store_commit(store, error) : fate;
}

static bool id_behind(const struct uuid *id, struct uuid *ret_next)
{
	*ret_next = *id;
	for (size_t i = sizeof(ret_next->bytes); i > 0; i--)
		if (++ret_next->bytes[i - 1] != 0)
			return true;
	return false;
}

static enum fate erase_page(struct store *store, const struct erase_page *page, struct checkpoint_list *list,
                            struct erase_result *ret_result, struct error *error)
{
	struct params *params = store_params(store);

	param_text(params, page->session_id);
	param_text(params, page->tenant);
	param_uuid(params, &page->from);
	param_int4(params, (int32_t)page->rows);
	store_send(store, page->dry_run ? &read_session : &lock_session, params,
	           &(struct answer){ .rows = checkpoint_list_rows, .context = list });
	enum fate fate = transaction_flush(store, error);
	if (fate != FATE_OK)
		return fate;
	ret_result->items = arena_array(list->arena, list->len, sizeof(*ret_result->items));
	if (ret_result->items == NULL)
		return list_no_memory(error);
	ret_result->end =
		list->len < page->rows || !id_behind(&list->items[list->len - 1]->id, &ret_result->next);
	for (; ret_result->len < list->len; ret_result->len++) {
		struct erased *erased = &ret_result->items[ret_result->len];
		erased->checkpoint = list->items[ret_result->len];
		fate = erase_row(page, erased, list->arena, error);
		if (fate != FATE_OK)
			return fate;
	}
	if (page->dry_run || ret_result->len == 0)
		return transaction_commit(store, error);
	return write_rows(store, page, ret_result, list->arena, error);
}

enum fate store_erase(struct store *store, const struct erase_page *page, struct arena *arena,
                      struct erase_result *ret_result, struct error *error)
{
	struct checkpoint_list list = { .arena = arena };
	enum fate fate = transaction_begin(store, page->dry_run ? TRANSACTION_READ : TRANSACTION_WRITE, error);

	*ret_result = (struct erase_result){ 0 };
	if (fate != FATE_OK)
		return fate;
	fate = erase_page(store, page, &list, ret_result, error);
	if (fate != FATE_OK)
		store_rollback(store);
	return fate;
}
