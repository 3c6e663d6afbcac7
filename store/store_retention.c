#include "store/store_retention.h"

#include "core/failpoint.h"
#include "store/store_connection.h"
#include "store/store_record.h"

#include <string.h>

#define DAY_US INT64_C(86400000000)

/* ---- whose turn it is ---- */

#define CLOCK "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint"

static const struct statement claim_sweep = {
	"claiming the sweep of what is settled",
	"UPDATE fermata.installation SET sweep_at = " CLOCK
	" + $1::bigint WHERE $2::boolean OR sweep_at <= " CLOCK,
};

enum fate store_sweep_claim(struct store *store, int64_t lease_us, bool mine, bool *ret_ours,
                            struct error *error)
{
	int64_t claimed = 0;
	enum fate fate = transaction_begin(store, TRANSACTION_WRITE, error);

	*ret_ours = false;
	if (fate != FATE_OK)
		return fate;
	struct params *params = store_params(store);
	param_int8(params, lease_us);
	param_bool(params, mine);
	store_send(store, &claim_sweep, params, &(struct answer){ .add_count = &claimed });
	fate = transaction_finish(store, error);
	*ret_ours = fate == FATE_OK && claimed == 1;
	return fate;
}

/* ---- the days ---- */

static const struct statement select_days = {
	"asking for the days of payloads",
	"SELECT (d.day - '1970-01-01'::date)::bigint, d.own FROM fermata.payload_days($1::date) d",
};

struct day_list {
	struct arena *arena;
	struct payload_day *items;
	size_t len;
	size_t cap;
};

static enum fate day_rows(void *context, const PGresult *rows, struct error *error)
{
	struct day_list *list = context;

	for (int i = 0; i < PQntuples(rows); i++) {
		struct payload_day *items =
			list_room(list->arena, list->items, list->len, &list->cap, sizeof(*items));
		if (items == NULL)
			return list_no_memory(error);
		list->items = items;
		struct row row = row_at(rows, i, NULL);
		items[list->len].day_us = row_int8(&row) * DAY_US;
		items[list->len++].own = row_bool(&row);
		enum fate fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

enum fate store_payload_days_held(struct store *store, int64_t until_us, struct arena *arena,
                                  struct payload_day **ret_days, size_t *ret_len, struct error *error)
{
	struct day_list list = { .arena = arena };
	enum fate fate = transaction_begin(store, TRANSACTION_READ, error);

	*ret_days = NULL;
	*ret_len = 0;
	if (fate != FATE_OK)
		return fate;
	struct params *params = store_params(store);
	param_day(params, until_us);
	store_send(store, &select_days, params, &(struct answer){ .rows = day_rows, .context = &list });
	fate = transaction_finish(store, error);
	if (fate != FATE_OK)
		return fate;
	*ret_days = list.items;
	*ret_len = list.len;
	return FATE_OK;
}

/* ---- one page of a day ---- */

/* The same as in payload_day_drop (0003_retention.sql). */
static const struct statement select_page = {
	"looking through a day of payloads",
	"SELECT p.checkpoint_id, NOT coalesce(c.payload_day = p.day AND c.wrapped_key IS NOT NULL AND coalesce("
	"fermata.settled_at(c.state, c.changed_at, c.decided_at) >= $4::bigint, true), false),"
	" coalesce(c.sealed_len, 0)::bigint FROM fermata.payload p"
	" LEFT JOIN fermata.checkpoint c ON c.checkpoint_id = ANY (ARRAY[p.checkpoint_id])"
	" WHERE p.day = $1::date AND p.checkpoint_id >= $2::uuid ORDER BY p.checkpoint_id LIMIT $3::integer",
};

/* What is due stays due: nothing leads out of what is settled. */
static const struct statement delete_due = {
	"deleting payloads",
	"DELETE FROM fermata.payload WHERE day = $1::date AND checkpoint_id = ANY ($2::uuid[])",
};

static const struct statement lock_kept = {
	"locking what is to be moved",
	"SELECT c.checkpoint_id FROM fermata.checkpoint c WHERE c.checkpoint_id = ANY ($1::uuid[])"
	" ORDER BY c.checkpoint_id FOR UPDATE",
};

/* A statement of its own after the lock: it may have been decided, settled, erased or moved while that was waited
 * for. What is settled goes to the day on which it was: that one is dropped at its time. */
static const struct statement move_kept = {
	"moving payloads",
	"WITH kept AS MATERIALIZED ("
	"SELECT c.checkpoint_id, c.payload_day AS old, least($3::date,"
	" (fermata.at(fermata.settled_at(c.state, c.changed_at, c.decided_at)) AT TIME ZONE 'UTC')::date) AS new"
	" FROM fermata.checkpoint c WHERE c.checkpoint_id = ANY ($2::uuid[])"
	" AND c.payload_day = $1::date AND c.wrapped_key IS NOT NULL"
	"), copied AS ("
	"INSERT INTO fermata.payload (checkpoint_id, day, body, tail)"
	" SELECT k.checkpoint_id, k.new, p.body, p.tail FROM kept k"
	" JOIN fermata.payload p ON p.checkpoint_id = ANY (ARRAY[k.checkpoint_id]) AND p.day = k.old"
	" WHERE k.new <> k.old"
	" ON CONFLICT (checkpoint_id, day) DO UPDATE SET body = excluded.body, tail = excluded.tail"
	" RETURNING checkpoint_id, day"
	"), pointed AS ("
	"UPDATE fermata.checkpoint c SET payload_day = m.day FROM copied m"
	" WHERE c.checkpoint_id = ANY (ARRAY[m.checkpoint_id]) RETURNING c.checkpoint_id"
	"), gone AS ("
	"DELETE FROM fermata.payload p USING kept k"
	" WHERE p.checkpoint_id = ANY (ARRAY[k.checkpoint_id]) AND p.day = k.old AND k.new <> k.old"
	") SELECT count(*) FROM pointed",
};

struct looked {
	struct uuid id;
	bool due;
	int64_t bytes;
};

struct looked_list {
	struct arena *arena;
	struct looked *items;
	size_t len;
	size_t cap;
};

static enum fate looked_rows(void *context, const PGresult *rows, struct error *error)
{
	struct looked_list *list = context;

	for (int i = 0; i < PQntuples(rows); i++) {
		struct looked *items = list_room(list->arena, list->items, list->len, &list->cap, sizeof(*items));
		if (items == NULL)
			return list_no_memory(error);
		list->items = items;
		struct row row = row_at(rows, i, NULL);
		items[list->len].id = row_uuid(&row);
		items[list->len].due = row_bool(&row);
		items[list->len++].bytes = row_int8(&row);
		enum fate fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

/* The id behind this one; false: there is none. */
static bool next_id(const struct uuid *id, struct uuid *ret_next)
{
	*ret_next = *id;
	for (size_t i = sizeof(ret_next->bytes); i > 0; i--)
		if (++ret_next->bytes[i - 1] != 0)
			return true;
	return false;
}

/* The ids of those that are due, or of those that are not, as far as the bytes reach. *ret_looked: how many of the
 * page that was. */
static size_t pick(const struct payload_page *page, const struct looked_list *list, struct uuid *ids,
                   size_t *ret_looked)
{
	size_t len = 0;
	size_t i = 0;
	int64_t bytes = 0;

	for (; i < list->len; i++) {
		const struct looked *looked = &list->items[i];
		if (looked->due == page->move)
			continue;
		bytes += page->move ? looked->bytes : 0;
		if (len > 0 && bytes > (int64_t)page->bytes)
			break;
		ids[len++] = looked->id;
	}
	*ret_looked = i;
	return len;
}

static void send_deletes(struct store *store, const struct payload_page *page, const struct uuid *ids,
                         size_t len, int64_t *add_count)
{
	struct params *params = store_params(store);

	param_day(params, page->day_us);
	param_uuids(params, ids, len);
	store_send(store, &delete_due, params, &(struct answer){ .add_count = add_count });
}

static void send_moves(struct store *store, const struct payload_page *page, const struct uuid *ids,
                       size_t len, int64_t *ret_count)
{
	struct params *params = store_params(store);

	param_uuids(params, ids, len);
	store_send(store, &lock_kept, params, NULL);
	params = store_params(store);
	param_day(params, page->day_us);
	param_uuids(params, ids, len);
	param_day(params, page->now);
	store_send(store, &move_kept, params, &(struct answer){ .rows = row_number, .context = ret_count });
}

static enum fate look_at_page(struct store *store, const struct payload_page *page, struct looked_list *list,
                              struct error *error)
{
	struct params *params = store_params(store);

	param_day(params, page->day_us);
	param_uuid(params, &page->from);
	param_int4(params, (int32_t)page->rows);
	param_int8(params, page->settled_before);
	store_send(store, &select_page, params, &(struct answer){ .rows = looked_rows, .context = list });
	return transaction_flush(store, error);
}

static enum fate sweep_page(struct store *store, const struct payload_page *page, struct looked_list *list,
                            struct payload_swept *ret_swept, struct error *error)
{
	int64_t count = 0;
	size_t looked;
	enum fate fate = look_at_page(store, page, list, error);

	if (fate != FATE_OK)
		return fate;
	struct uuid *ids = arena_array(list->arena, list->len, sizeof(*ids));
	if (ids == NULL)
		return list_no_memory(error);
	size_t len = pick(page, list, ids, &looked);
	if (len > 0 && page->move)
		send_moves(store, page, ids, len, &count);
	else if (len > 0)
		send_deletes(store, page, ids, len, &count);
	fate = len > 0 ? transaction_flush(store, error) : FATE_OK;
	if (fate == FATE_OK && len > 0)
		fate = failpoint(FAILPOINT_RETENTION_PAYLOADS_OPEN, error);
	if (fate == FATE_OK)
		fate = transaction_commit(store, error);
	if (fate != FATE_OK)
		return fate;
	ret_swept->moved = page->move ? (size_t)count : 0;
	ret_swept->deleted = page->move ? 0 : (size_t)count;
	ret_swept->looked = looked;
	ret_swept->end = (looked == list->len && list->len < page->rows) || looked == 0 ||
	                 !next_id(&list->items[looked - 1].id, &ret_swept->next);
	return FATE_OK;
}

enum fate store_payload_sweep(struct store *store, const struct payload_page *page, struct arena *arena,
                              struct payload_swept *ret_swept, struct error *error)
{
	struct looked_list list = { .arena = arena };
	enum fate fate = transaction_begin(store, TRANSACTION_WRITE, error);

	*ret_swept = (struct payload_swept){ 0 };
	if (fate != FATE_OK)
		return fate;
	fate = sweep_page(store, page, &list, ret_swept, error);
	if (fate != FATE_OK)
		store_rollback(store);
	return fate;
}

/* ---- the end of a day ---- */

/* What waits for the table holds others up, so it does not wait for long; but a large day may be looked through for
 * as long as it takes. */
static const struct statement drop_patience = {
	"setting lock_timeout and statement_timeout",
	"SELECT pg_catalog.set_config('lock_timeout', '500ms', true),"
	" pg_catalog.set_config('statement_timeout', '900s', true)",
};

static const struct statement drop_day = {
	"dropping a day of payloads",
	"SELECT coalesce(fermata.payload_day_drop($1::date, $2::bigint), -1)",
};

enum fate store_payload_day_drop(struct store *store, int64_t day_us, int64_t settled_before,
                                 int64_t *ret_payloads, struct error *error)
{
	int64_t payloads = -1;
	enum fate fate = transaction_begin(store, TRANSACTION_WRITE, error);

	*ret_payloads = -1;
	if (fate != FATE_OK)
		return fate;
	store_send(store, &drop_patience, NULL, NULL);
	struct params *params = store_params(store);
	param_day(params, day_us);
	param_int8(params, settled_before);
	store_send(store, &drop_day, params, &(struct answer){ .rows = row_number, .context = &payloads });
	fate = transaction_flush(store, error);
	if (fate == FATE_OK)
		fate = failpoint(FAILPOINT_RETENTION_DAY_OPEN, error);
	if (fate == FATE_OK)
		fate = transaction_commit(store, error);
	if (fate != FATE_OK)
		store_rollback(store);
	else
		*ret_payloads = payloads;
	return fate;
}
