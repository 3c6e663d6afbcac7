#include "store/store_connection.h"
#include "store/store_record.h"

#include "core/failpoint.h"

#include <stdio.h>

/* ---- expiry ---- */

/* SKIP LOCKED: what another worker has claimed and is sending now is its own. */
static const struct statement claim_expiry = {
	"claiming what expires",
	"WITH due AS MATERIALIZED ("
	"SELECT checkpoint_id FROM fermata.expiry"
	" WHERE expires_at < $1::bigint AND (sent_at IS NULL OR sent_at < $2::bigint)"
	" ORDER BY expires_at LIMIT $4::integer FOR UPDATE SKIP LOCKED"
	"), claimed AS ("
	"UPDATE fermata.expiry e SET sent_at = $3::bigint FROM due"
	" WHERE e.checkpoint_id = ANY (ARRAY[due.checkpoint_id])"
	" RETURNING e.checkpoint_id, e.expires_at"
	") SELECT x.checkpoint_id, x.expires_at, (SELECT count(*) FROM fermata.decision d"
	" WHERE d.checkpoint_id = x.checkpoint_id AND d.decision = 'EXPIRE' AND d.outcome = 'refused')::integer,"
	" c.session_id, c.digest FROM claimed x"
	" JOIN fermata.checkpoint c ON c.checkpoint_id = ANY (ARRAY[x.checkpoint_id])"
	" WHERE c.filled ORDER BY x.expires_at, x.checkpoint_id",
};

static const struct statement select_next_expiry = {
	"looking for what expires next",
	"SELECT min(expires_at) FROM fermata.expiry",
};

struct due_list {
	struct arena *arena;
	struct due *items;
	size_t len;
	size_t cap;
};

static enum fate due_rows(void *context, const PGresult *rows, struct error *error)
{
	struct due_list *list = context;

	for (int i = 0; i < PQntuples(rows); i++) {
		struct due *items = list_room(list->arena, list->items, list->len, &list->cap, sizeof(*items));
		if (items == NULL)
			return list_no_memory(error);
		list->items = items;
		struct due *due = &items[list->len++];
		struct row row = row_at(rows, i, list->arena);
		due->checkpoint_id = row_uuid(&row);
		due->expires_at = row_int8(&row);
		due->refused = (uint32_t)row_int4(&row);
		due->session_id = row_text_or_empty(&row);
		row_fixed(&row, due->digest, sizeof(due->digest));
		enum fate fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

enum fate store_expiry_claim(struct store *store, int64_t before, int64_t resend_before, int64_t now,
                             size_t limit, struct arena *arena, struct due **ret_due, size_t *ret_len,
                             struct error *error)
{
	struct due_list list = { .arena = arena };
	enum fate fate = transaction_begin(store, TRANSACTION_WRITE, error);

	*ret_due = NULL;
	*ret_len = 0;
	if (fate != FATE_OK)
		return fate;
	struct params *params = store_params(store);
	param_int8(params, before);
	param_int8(params, resend_before);
	param_int8(params, now);
	param_int4(params, (int32_t)(limit < INT32_MAX ? limit : INT32_MAX));
	store_send(store, &claim_expiry, params, &(struct answer){ .rows = due_rows, .context = &list });
	fate = transaction_flush(store, error);
	if (fate != FATE_OK) {
		store_rollback(store);
		return fate;
	}
	*ret_due = list.items;
	*ret_len = list.len;
	return FATE_OK;
}

enum fate store_expiry_next(struct store *store, int64_t *ret_expires_at, struct error *error)
{
	enum fate fate = transaction_begin(store, TRANSACTION_READ, error);

	*ret_expires_at = TIME_NONE;
	if (fate != FATE_OK)
		return fate;
	store_send(store, &select_next_expiry, NULL,
	           &(struct answer){ .rows = row_number, .context = ret_expires_at });
	return transaction_finish(store, error);
}

/* ---- unclaimed ---- */

/* What intake has locked is about to be claimed. */
static const struct statement lock_unclaimed = {
	"locking what was never claimed",
	"SELECT c.checkpoint_id FROM fermata.unclaimed w"
	" JOIN fermata.checkpoint c ON c.checkpoint_id = ANY (ARRAY[w.checkpoint_id])"
	" WHERE w.since < $1::bigint AND c.state = 'UNCLAIMED' ORDER BY w.checkpoint_id LIMIT $2::integer"
	" FOR UPDATE OF c SKIP LOCKED",
};

static const struct statement refuse_waiting = {
	"refusing decisions that nobody claimed",
	"UPDATE fermata.decision SET outcome = 'refused', reason = $2::text"
	" WHERE checkpoint_id = ANY ($1::uuid[]) AND outcome = 'waiting'",
};

static const struct statement delete_unclaimed = {
	"clearing what was never claimed",
	"DELETE FROM fermata.unclaimed WHERE checkpoint_id = ANY ($1::uuid[])",
};

static const struct statement delete_checkpoints = {
	"deleting what was never claimed",
	"DELETE FROM fermata.checkpoint WHERE checkpoint_id = ANY ($1::uuid[]) AND state = 'UNCLAIMED'",
};

struct id_list {
	struct arena *arena;
	struct uuid *items;
	size_t len;
	size_t cap;
};

static enum fate id_rows(void *context, const PGresult *rows, struct error *error)
{
	struct id_list *list = context;

	for (int i = 0; i < PQntuples(rows); i++) {
		struct uuid *items = list_room(list->arena, list->items, list->len, &list->cap, sizeof(*items));
		if (items == NULL)
			return list_no_memory(error);
		list->items = items;
		struct row row = row_at(rows, i, NULL);
		items[list->len++] = row_uuid(&row);
		enum fate fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

/* The decisions are looked up after the rows are locked, so that none that came meanwhile is left waiting. */
static void send_sweep(struct store *store, const struct id_list *ids)
{
	char reason[128];
	struct params *params = store_params(store);

	snprintf(reason, sizeof(reason), "%s: %s", refusal_name(REFUSAL_NO_SUSPEND),
	         refusal_text(REFUSAL_NO_SUSPEND));
	param_uuids(params, ids->items, ids->len);
	param_name(params, reason);
	store_send(store, &refuse_waiting, params, NULL);
	params = store_params(store);
	param_uuids(params, ids->items, ids->len);
	store_send(store, &delete_unclaimed, params, NULL);
	params = store_params(store);
	param_uuids(params, ids->items, ids->len);
	store_send(store, &delete_checkpoints, params, NULL);
}

static enum fate sweep(struct store *store, int64_t before, size_t limit, struct id_list *ids,
                       struct error *error)
{
	enum fate fate = transaction_begin(store, TRANSACTION_WRITE, error);

	if (fate != FATE_OK)
		return fate;
	struct params *params = store_params(store);
	param_int8(params, before);
	param_int4(params, (int32_t)(limit < INT32_MAX ? limit : INT32_MAX));
	store_send(store, &lock_unclaimed, params, &(struct answer){ .rows = id_rows, .context = ids });
	fate = transaction_flush(store, error);
	if (fate == FATE_OK && ids->len > 0)
		fate = failpoint(FAILPOINT_REAPER_SWEEP_OPEN, error);
	if (fate != FATE_OK) {
		store_rollback(store);
		return fate;
	}
	if (ids->len > 0)
		send_sweep(store, ids);
	return transaction_finish(store, error);
}

enum fate store_unclaimed_sweep(struct store *store, int64_t before, size_t limit, size_t *ret_count,
                                struct error *error)
{
	struct id_list ids = { .arena = arena_new(limit * 4 * sizeof(struct uuid) + 4096) };

	*ret_count = 0;
	if (ids.arena == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "PostgreSQL, sweeping: no memory");
	enum fate fate = sweep(store, before, limit, &ids, error);
	if (fate == FATE_OK)
		*ret_count = ids.len;
	arena_free(ids.arena);
	return fate;
}

/* ---- gauges ---- */

static const struct statement count_outbox = {
	"counting the outbox",
	"SELECT count(*) FROM fermata.outbox",
};

static const struct statement count_gates = {
	"counting the outbox of gate events",
	"SELECT count(*) FROM fermata.gate_outbox",
};

static const struct statement count_unclaimed = {
	"counting unclaimed decisions",
	"SELECT coalesce(sum(decisions), 0)::bigint FROM fermata.unclaimed",
};

enum fate store_backlog(struct store *store, int64_t *ret_outbox, int64_t *ret_gates, int64_t *ret_unclaimed,
                        struct error *error)
{
	enum fate fate = transaction_begin(store, TRANSACTION_READ, error);

	if (fate != FATE_OK)
		return fate;
	store_send(store, &count_outbox, NULL, &(struct answer){ .rows = row_number, .context = ret_outbox });
	store_send(store, &count_gates, NULL, &(struct answer){ .rows = row_number, .context = ret_gates });
	store_send(store, &count_unclaimed, NULL,
	           &(struct answer){ .rows = row_number, .context = ret_unclaimed });
	return transaction_finish(store, error);
}
