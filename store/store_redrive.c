#include "store/store_redrive.h"

#include "store/store_connection.h"
#include "store/store_row.h"

#define ROW_BYTES ((size_t)64 << 10)

/* Numbers are given, and committed, in one order: those who redrive do it one after the other. */
static const struct statement lock_redrive = {
	"waiting for others who redrive",
	"SELECT pg_catalog.pg_advisory_xact_lock(1179996749, 3)",
};

static const struct statement select_redriven = {
	"reading what was redriven",
	"SELECT a.seq, split_part(a.details, ' ', 1) FROM fermata.audit a"
	" WHERE a.seq > $1::bigint AND a.what = '" AUDIT_REDRIVE "' AND a.details IS NOT NULL ORDER BY a.seq",
};

static const struct statement insert_redriven = {
	"recording what was redriven",
	"INSERT INTO fermata.audit (at, who, what, details)"
	" SELECT $1::bigint, $2::text, '" AUDIT_REDRIVE "', u.origin || ' to ' || u.topic"
	" FROM unnest($3::text[], $4::text[]) u (origin, topic)",
};

struct telling {
	int64_t seq;         /* of the last row */
	struct arena *arena; /* of one row */
	store_each_redriven *each;
	void *context;
};

static enum fate tell_rows(void *context, const PGresult *rows, struct error *error)
{
	struct telling *telling = context;

	for (int i = 0; i < PQntuples(rows); i++) {
		arena_reset(telling->arena);
		struct row row = row_at(rows, i, telling->arena);
		telling->seq = row_int8(&row);
		struct view origin = row_text_or_empty(&row);
		enum fate fate = row_end(&row, error);
		if (fate == FATE_OK)
			fate = telling->each(telling->context, origin, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

static void send_select(struct store *store, struct telling *telling)
{
	struct params *params = store_params(store);

	param_int8(params, telling->seq);
	store_send(store, &select_redriven, params,
	           &(struct answer){ .rows = tell_rows, .context = telling, .by_row = true });
}

static enum fate no_memory(struct error *error)
{
	return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for rows of the database");
}

enum fate store_redriven(struct store *store, int64_t *seq, store_each_redriven *each, void *context,
                         struct error *error)
{
	struct telling telling = { .seq = *seq, .arena = arena_new(ROW_BYTES), .each = each, .context = context };
	enum fate fate =
		telling.arena != NULL ? transaction_begin(store, TRANSACTION_READ, error) : no_memory(error);

	if (fate == FATE_OK) {
		send_select(store, &telling);
		fate = transaction_finish(store, error);
	}
	*seq = telling.seq;
	arena_free(telling.arena);
	return fate;
}

enum fate store_redrive_begin(struct store *store, int64_t *seq, store_each_redriven *each, void *context,
                              struct error *error)
{
	struct telling telling = { .seq = *seq, .arena = arena_new(ROW_BYTES), .each = each, .context = context };
	enum fate fate =
		telling.arena != NULL ? transaction_begin(store, TRANSACTION_WRITE, error) : no_memory(error);

	if (fate == FATE_OK) {
		store_send(store, &lock_redrive, NULL, NULL);
		send_select(store, &telling);
		fate = transaction_flush(store, error);
		if (fate != FATE_OK)
			store_rollback(store);
	}
	*seq = telling.seq;
	arena_free(telling.arena);
	return fate;
}

enum fate store_redrive_mark(struct store *store, struct view who, int64_t now,
                             const struct redriven *letters, size_t len, struct error *error)
{
	enum fate fate = transaction_open(store, error);

	if (fate != FATE_OK)
		return fate;
	struct params *params = store_params(store);
	param_int8(params, now);
	param_text(params, who);
	param_array(params, PG_TEXT, len);
	for (size_t i = 0; i < len; i++)
		item_text(params, letters[i].origin);
	param_array(params, PG_TEXT, len);
	for (size_t i = 0; i < len; i++)
		item_text(params, letters[i].topic);
	store_send(store, &insert_redriven, params, NULL);
	fate = transaction_flush(store, error);
	if (fate != FATE_OK)
		store_rollback(store);
	return fate;
}
