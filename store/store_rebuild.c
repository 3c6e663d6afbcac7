#include "store/store_rebuild.h"

#include "store/store_connection.h"
#include "store/store_record.h"

static const struct statement select_holdings = {
	"counting what there is",
	"SELECT (SELECT count(*) FROM fermata.checkpoint), (SELECT count(*) FROM fermata.decision),"
	" (SELECT count(*) FROM fermata.kafka_offset WHERE cluster_id = $1::text), count(*),"
	" count(*) FILTER (WHERE routes_digest = $2::bytea) FROM fermata.ledger_offset WHERE cluster_id = "
	"$1::text",
};

static const struct statement select_ledgers = {
	"reading the ledgers' positions",
	"SELECT topic, partition, " LEDGER_COLUMNS " FROM fermata.ledger_offset"
	" WHERE cluster_id = $1::text ORDER BY topic, partition",
};

static const struct statement end_rebuild = {
	"ending a rebuild",
	"UPDATE fermata.ledger_offset SET routes_digest = $2::bytea"
	" WHERE cluster_id = $1::text AND routes_digest = $3::bytea",
};

static const struct statement count_states = {
	"counting states",
	"SELECT state, count(*), count(*) FILTER (WHERE NOT filled) FROM fermata.checkpoint GROUP BY state",
};

static const struct statement count_outcomes = {
	"counting outcomes",
	"SELECT outcome, count(*) FROM fermata.decision GROUP BY outcome",
};

static const struct statement count_decided = {
	"counting what waits to be published",
	"SELECT count(*) FROM fermata.outbox",
};

/* ---- what there is ---- */

static enum fate holdings_rows(void *context, const PGresult *rows, struct error *error)
{
	struct holdings *holdings = context;
	struct row row = row_at(rows, 0, NULL);

	holdings->checkpoints = row_int8(&row);
	holdings->decisions = row_int8(&row);
	holdings->positions = row_int8(&row);
	holdings->ledgers = row_int8(&row);
	holdings->rebuilding = row_int8(&row);
	return row_end(&row, error);
}

enum fate store_holdings(struct store *store, const char *cluster_id, const uint8_t rebuilding[32],
                         struct holdings *ret_holdings, struct error *error)
{
	enum fate fate = transaction_begin(store, TRANSACTION_READ, error);

	*ret_holdings = (struct holdings){ 0 };
	if (fate != FATE_OK)
		return fate;
	struct params *params = store_params(store);
	param_name(params, cluster_id);
	param_bytes(params, (struct view){ rebuilding, 32 });
	store_send(store, &select_holdings, params,
	           &(struct answer){ .rows = holdings_rows, .context = ret_holdings });
	return transaction_finish(store, error);
}

/* ---- ledgers ---- */

struct ledger_list {
	struct arena *arena;
	struct ledger_row *items;
	size_t len;
};

static enum fate ledgers_rows(void *context, const PGresult *rows, struct error *error)
{
	struct ledger_list *list = context;
	size_t count = (size_t)PQntuples(rows);

	list->items = arena_array(list->arena, count, sizeof(*list->items));
	if (list->items == NULL)
		return list_no_memory(error);
	for (; list->len < count; list->len++) {
		struct ledger_row *item = &list->items[list->len];
		struct row row = row_at(rows, (int)list->len, list->arena);
		item->topic = row_text_or_empty(&row);
		item->partition = row_int4(&row);
		row_ledger(&row, &item->ledger);
		enum fate fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

enum fate store_ledgers(struct store *store, const char *cluster_id, struct arena *arena,
                        struct ledger_row **ret_rows, size_t *ret_len, struct error *error)
{
	struct ledger_list list = { .arena = arena };
	enum fate fate = transaction_begin(store, TRANSACTION_READ, error);

	if (fate != FATE_OK)
		return fate;
	struct params *params = store_params(store);
	param_name(params, cluster_id);
	store_send(store, &select_ledgers, params, &(struct answer){ .rows = ledgers_rows, .context = &list });
	fate = transaction_finish(store, error);
	*ret_rows = list.items;
	*ret_len = list.len;
	return fate;
}

enum fate store_ledgers_rebuilt(struct store *store, const char *cluster_id, const uint8_t rebuilding[32],
                                const uint8_t routes_digest[32], struct error *error)
{
	enum fate fate = transaction_begin(store, TRANSACTION_WRITE, error);

	if (fate != FATE_OK)
		return fate;
	struct params *params = store_params(store);
	param_name(params, cluster_id);
	param_bytes(params, (struct view){ routes_digest, 32 });
	param_bytes(params, (struct view){ rebuilding, 32 });
	store_send(store, &end_rebuild, params, NULL);
	return transaction_finish(store, error);
}

/* ---- what came back ---- */

static const char *state_name(int state)
{
	return gate_state_name((enum gate_state)state);
}

static const char *outcome_of(int outcome)
{
	return outcome_name((enum outcome)outcome);
}

static enum fate state_rows(void *context, const PGresult *rows, struct error *error)
{
	struct contents *contents = context;

	for (int i = 0; i < PQntuples(rows); i++) {
		struct row row = row_at(rows, i, NULL);
		int state = row_enum(&row, state_name, GATE_STATE_COUNT);
		int64_t count = row_int8(&row);
		int64_t bare = row_int8(&row);
		enum fate fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
		if (state >= 0)
			contents->states[state] = count;
		if (state == GATE_RESUMED)
			contents->bare = bare;
	}
	return FATE_OK;
}

static enum fate outcome_rows(void *context, const PGresult *rows, struct error *error)
{
	struct contents *contents = context;

	for (int i = 0; i < PQntuples(rows); i++) {
		struct row row = row_at(rows, i, NULL);
		int outcome = row_enum(&row, outcome_of, OUTCOME_REFUSED + 1);
		int64_t count = row_int8(&row);
		enum fate fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
		if (outcome >= 0)
			contents->outcomes[outcome] = count;
	}
	return FATE_OK;
}

enum fate store_contents(struct store *store, struct contents *ret_contents, struct error *error)
{
	enum fate fate = transaction_begin(store, TRANSACTION_SNAPSHOT, error);

	*ret_contents = (struct contents){ 0 };
	if (fate != FATE_OK)
		return fate;
	store_send(store, &count_states, NULL, &(struct answer){ .rows = state_rows, .context = ret_contents });
	store_send(store, &count_outcomes, NULL,
	           &(struct answer){ .rows = outcome_rows, .context = ret_contents });
	store_send(store, &count_decided, NULL,
	           &(struct answer){ .rows = row_number, .context = &ret_contents->outbox });
	return transaction_finish(store, error);
}
