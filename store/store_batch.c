/* The first half of a batch of intake: what it stands on is moved, locked and read. */
#include "store/store_positions.h"

#include "store/store_hash.h"

#include <stdlib.h>
#include <string.h>

/* ---- statements ---- */

static const struct statement move_new = {
	"making a position",
	"INSERT INTO fermata.kafka_offset"
	" (cluster_id, topic, partition, next, last_offset, last_timestamp, last_digest)"
	" VALUES ($1::text, $2::text, $3::integer, $4::bigint, $5::bigint, $6::bigint, $7::bytea)"
	" ON CONFLICT (cluster_id, topic, partition) DO NOTHING",
};

static const struct statement move_on = {
	"moving a position",
	"UPDATE fermata.kafka_offset SET next = $4::bigint, last_offset = coalesce($5::bigint, last_offset),"
	" last_timestamp = coalesce($6::bigint, last_timestamp), last_digest = coalesce($7::bytea, last_digest)"
	" WHERE cluster_id = $1::text AND topic = $2::text AND partition = $3::integer AND next = $8::bigint",
};

/* The function is called row by row, in the order of the array. */
static const struct statement lock_lines = {
	"locking lines",
	"SELECT count(pg_catalog.pg_advisory_xact_lock(k)) FROM unnest($1::bigint[]) k",
};

/* The ids come sorted, and rows are locked in the order of the ids: nothing but a search for each of them in turn can
 * carry the join out (store_connection.c). Sorting the rows themselves would be to sort all of their columns. */
#define CHECKPOINTS_OF(ids)                                                                                  \
	"SELECT " CHECKPOINT_COLUMNS " FROM " ids " JOIN fermata.checkpoint c"                                   \
	" ON c.checkpoint_id = ANY (ARRAY[wanted.id])" CHECKPOINT_COMMON

#define ASKED_FOR "unnest($1::uuid[]) wanted (id)"

#define ASKED_FOR_AND_OPEN                                                                                   \
	"(SELECT w.id FROM ("                                                                                    \
	" SELECT unnest($1::uuid[]) AS id"                                                                       \
	" UNION"                                                                                                 \
	" SELECT o.checkpoint_id FROM unnest($2::text[], $3::text[], $4::text[]) l (session_id, tenant, "        \
	"gate_id)"                                                                                               \
	" JOIN fermata.checkpoint o ON hashtext(o.session_id) = ANY (ARRAY[hashtext(l.session_id)])"             \
	" AND hashtext(o.gate_id) = ANY (ARRAY[hashtext(l.gate_id)]) AND o.session_id = ANY "                    \
	"(ARRAY[l.session_id])"                                                                                  \
	" AND o.tenant = l.tenant AND o.gate_id = l.gate_id"                                                     \
	" WHERE o.state = 'PENDING' OR (o.state = 'QUARANTINED' AND o.verdict IS NULL)"                          \
	") w ORDER BY w.id) wanted"

/* A row that changed while its lock was waited for comes as it is now; one that was closed meanwhile comes too, and does
 * no harm. */
static const struct statement lock_checkpoints = {
	"locking checkpoints",
	CHECKPOINTS_OF(ASKED_FOR) " FOR UPDATE OF c",
};

static const struct statement lock_lines_too = {
	"locking checkpoints and what is open in lines",
	CHECKPOINTS_OF(ASKED_FOR_AND_OPEN) " FOR UPDATE OF c",
};

static const struct statement look_at_checkpoints = {
	"looking at checkpoints",
	CHECKPOINTS_OF(ASKED_FOR),
};

static const struct statement look_at_lines_too = {
	"looking at checkpoints and what is open in lines",
	CHECKPOINTS_OF(ASKED_FOR_AND_OPEN),
};

static const struct statement select_highest = {
	"reading the lines",
	"SELECT coalesce((SELECT c.suspend_seq FROM fermata.checkpoint c WHERE hashtext(c.session_id) = "
	"hashtext(l.session_id)"
	" AND hashtext(c.gate_id) = hashtext(l.gate_id) AND c.session_id = l.session_id"
	" AND c.tenant = l.tenant AND c.gate_id = l.gate_id ORDER BY c.suspend_seq DESC LIMIT 1), 0)"
	" FROM unnest($1::text[], $2::text[], $3::text[]) WITH ORDINALITY l (session_id, tenant, gate_id, n)"
	" ORDER BY l.n",
};

static const struct statement select_decisions = {
	"reading decisions",
	"SELECT " DECISION_COLUMNS ", d.edits_body FROM fermata.decision d"
	" WHERE d.decision_id = ANY ($1::uuid[])"
	" OR (d.checkpoint_id = ANY ($2::uuid[]) AND d.outcome IN ('counted', 'waiting'))"
	" ORDER BY d.seq",
};

static const struct statement select_horizons = {
	"reading the horizons",
	"SELECT h.topic, h.partition, h.below, h.until FROM fermata.horizon h WHERE h.cluster_id = $1::text",
};

static const struct statement count_unclaimed = {
	"counting the decisions that wait",
	"SELECT coalesce(sum(decisions), 0)::bigint FROM fermata.unclaimed",
};

/* ---- moves ---- */

static void send_move(struct store *store, const char *cluster_id, const struct move *move,
                      int64_t *add_count)
{
	struct params *params = store_params(store);
	bool made = move->lo == POSITION_NEW;

	param_name(params, cluster_id);
	param_name(params, move->topic);
	param_int4(params, move->partition);
	param_int8(params, move->hi);
	if (move->has_last) {
		param_int8(params, move->last_offset);
		param_int8(params, move->last_timestamp);
		param_bytes(params, (struct view){ move->last_digest, sizeof(move->last_digest) });
	} else {
		param_null(params);
		param_null(params);
		param_null(params);
	}
	if (!made)
		param_int8(params, move->lo);
	store_send(store, made ? &move_new : &move_on, params, &(struct answer){ .add_count = add_count });
}

/* ---- lines ---- */

/* Two lines with one hash wait for each other needlessly. */
static int64_t line_key(const struct line *line)
{
	uint64_t hash = hash_view(HASH_START, line->tenant);

	return (int64_t)hash_view(hash_view(hash, line->session_id), line->gate_id);
}

static int compare_keys(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a;
	int64_t right = *(const int64_t *)b;

	return (left > right) - (left < right);
}

static enum fate send_line_locks(struct store *store, const struct batch_request *request,
                                 struct arena *arena, struct error *error)
{
	int64_t *keys = arena_array(arena, request->lines_len, sizeof(*keys));

	if (keys == NULL)
		return list_no_memory(error);
	for (size_t i = 0; i < request->lines_len; i++)
		keys[i] = line_key(&request->lines[i]);
	qsort(keys, request->lines_len, sizeof(*keys), compare_keys);
	struct params *params = store_params(store);
	param_array(params, PG_INT8, request->lines_len);
	for (size_t i = 0; i < request->lines_len; i++)
		item_int8(params, keys[i]);
	store_send(store, &lock_lines, params, NULL);
	return FATE_OK;
}

static void param_lines(struct params *params, const struct batch_request *request)
{
	param_array(params, PG_TEXT, request->lines_len);
	for (size_t i = 0; i < request->lines_len; i++)
		item_text(params, request->lines[i].session_id);
	param_array(params, PG_TEXT, request->lines_len);
	for (size_t i = 0; i < request->lines_len; i++)
		item_text(params, request->lines[i].tenant);
	param_array(params, PG_TEXT, request->lines_len);
	for (size_t i = 0; i < request->lines_len; i++)
		item_text(params, request->lines[i].gate_id);
}

/* ---- what comes back ---- */

struct numbers {
	int64_t *items;
	size_t len; /* how many are expected */
};

static enum fate number_rows(void *context, const PGresult *rows, struct error *error)
{
	struct numbers *numbers = context;

	for (int i = 0; i < PQntuples(rows) && (size_t)i < numbers->len; i++) {
		struct row row = row_at(rows, i, NULL);
		numbers->items[i] = row_int8(&row);
		enum fate fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

struct horizon_list {
	struct arena *arena;
	struct horizon *items;
	size_t len;
	size_t cap;
};

static enum fate horizon_rows(void *context, const PGresult *rows, struct error *error)
{
	struct horizon_list *list = context;

	for (int i = 0; i < PQntuples(rows); i++) {
		struct horizon *items = list_room(list->arena, list->items, list->len, &list->cap, sizeof(*items));
		if (items == NULL)
			return list_no_memory(error);
		list->items = items;
		struct row row = row_at(rows, i, list->arena);
		struct horizon *horizon = &items[list->len++];
		horizon->topic = row_text_or_empty(&row);
		horizon->partition = row_int4(&row);
		horizon->below = row_int8(&row);
		horizon->until = row_int8(&row);
		enum fate fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

struct gathering {
	int64_t moved;
	struct position_list positions;
	struct checkpoint_list checkpoints;
	struct decision_list decisions;
	struct horizon_list horizons;
	struct numbers highest;
	struct numbers unclaimed;
};

static void send_locks_of_rows(struct store *store, const struct batch_request *request,
                               struct gathering *gathering)
{
	static const struct statement *const statements[2][2] = { { &lock_checkpoints, &lock_lines_too },
		                                                      { &look_at_checkpoints, &look_at_lines_too } };
	bool lines = request->lines_len > 0;
	struct params *params = store_params(store);

	param_uuids(params, request->checkpoints, request->checkpoints_len);
	if (lines)
		param_lines(params, request);
	store_send(store, statements[request->look_only][lines], params,
	           &(struct answer){ .rows = checkpoint_list_rows, .context = &gathering->checkpoints });
}

/* Statements of their own after the locks, so that they see what the locks waited for. */
static void send_reads(struct store *store, const struct batch_request *request, struct gathering *gathering)
{
	struct params *params;

	if (request->lines_len > 0) {
		params = store_params(store);
		param_lines(params, request);
		store_send(store, &select_highest, params,
		           &(struct answer){ .rows = number_rows, .context = &gathering->highest });
	}
	if (request->checkpoints_len > 0 || request->decisions_len > 0) {
		params = store_params(store);
		param_uuids(params, request->decisions, request->decisions_len);
		param_uuids(params, request->checkpoints, request->checkpoints_len);
		store_send(store, &select_decisions, params,
		           &(struct answer){ .rows = decision_list_rows, .context = &gathering->decisions });
		params = store_params(store);
		param_name(params, request->cluster_id);
		store_send(store, &select_horizons, params,
		           &(struct answer){ .rows = horizon_rows, .context = &gathering->horizons });
	}
	if (request->count_unclaimed)
		store_send(store, &count_unclaimed, NULL,
		           &(struct answer){ .rows = number_rows, .context = &gathering->unclaimed });
}

static enum fate send_batch(struct store *store, const struct batch_request *request, struct arena *arena,
                            struct gathering *gathering, struct error *error)
{
	for (size_t i = 0; i < request->moves_len; i++)
		send_move(store, request->cluster_id, &request->moves[i], &gathering->moved);
	positions_send(store, request->cluster_id, &gathering->positions);
	if (request->lines_len > 0 && !request->look_only) {
		enum fate fate = send_line_locks(store, request, arena, error);
		if (fate != FATE_OK)
			return fate;
	}
	if (request->checkpoints_len > 0 || request->lines_len > 0)
		send_locks_of_rows(store, request, gathering);
	send_reads(store, request, gathering);
	return FATE_OK;
}

/* That they came so is that they were locked so. */
static enum fate check_order(const struct checkpoint_list *list, struct error *error)
{
	for (size_t i = 1; i < list->len; i++)
		if (uuid_compare(&list->items[i - 1]->id, &list->items[i]->id) >= 0)
			return error_set(error, FATE_FATAL, ERR_BUG,
			                 "PostgreSQL, locking checkpoints: not in the order of their ids");
	return FATE_OK;
}

enum fate store_batch_begin(struct store *store, const struct batch_request *request, struct arena *arena,
                            struct batch_loaded *ret_loaded, struct error *error)
{
	struct gathering gathering = {
		.positions.arena = arena,
		.checkpoints.arena = arena,
		.decisions.arena = arena,
		.horizons.arena = arena,
		.highest = { arena_array(arena, request->lines_len, sizeof(int64_t)), request->lines_len },
		.unclaimed = { &ret_loaded->unclaimed, 1 },
	};

	memset(ret_loaded, 0, sizeof(*ret_loaded));
	if (gathering.highest.items == NULL)
		return list_no_memory(error);
	enum transaction_kind kind = request->look_only ? TRANSACTION_READ : TRANSACTION_WRITE;
	enum fate fate = transaction_begin(store, kind, error);
	if (fate != FATE_OK)
		return fate;
	fate = send_batch(store, request, arena, &gathering, error);
	if (fate == FATE_OK)
		fate = transaction_flush(store, error);
	if (fate == FATE_OK)
		fate = check_order(&gathering.checkpoints, error);
	if (fate != FATE_OK)
		return fate;
	ret_loaded->stale = gathering.moved != (int64_t)request->moves_len;
	ret_loaded->positions = gathering.positions.items;
	ret_loaded->positions_len = gathering.positions.len;
	ret_loaded->checkpoints = gathering.checkpoints.items;
	ret_loaded->checkpoints_len = gathering.checkpoints.len;
	ret_loaded->highest = gathering.highest.items;
	ret_loaded->decisions = gathering.decisions.items;
	ret_loaded->decisions_len = gathering.decisions.len;
	ret_loaded->horizons = gathering.horizons.items;
	ret_loaded->horizons_len = gathering.horizons.len;
	return FATE_OK;
}
