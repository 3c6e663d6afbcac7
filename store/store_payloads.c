#include "store/store_payloads.h"

#include "store/store_record.h"

#include <stdlib.h>

/* What was put apart (param_payload) together again. */
#define BODY "CASE WHEN p.tail IS NULL THEN p.body ELSE p.body || p.tail END"

static const struct statement select_payloads = {
	"reading payloads",
	"SELECT u.n, " BODY " FROM unnest($1::uuid[]) WITH ORDINALITY u (id, n)"
	" JOIN fermata.checkpoint c ON c.checkpoint_id = ANY (ARRAY[u.id])"
	" JOIN fermata.payload p ON p.checkpoint_id = ANY (ARRAY[c.checkpoint_id]) AND p.day = c.payload_day",
};

/* The row of checkpoint was read before, in the same snapshot. Only the partition of that day is opened: with the day in
 * an array all of them would be, for each call, and the one chosen anew for each row. */
static const struct statement select_of_day = {
	"reading payloads of a day",
	"SELECT p.checkpoint_id, " BODY " FROM fermata.payload p"
	" WHERE p.day = $1::date AND p.checkpoint_id = ANY ($2::uuid[])",
};

static enum fate body_rows(void *context, const PGresult *rows, struct error *error)
{
	struct payloads *payloads = context;

	for (int i = 0; i < PQntuples(rows); i++) {
		struct row row = row_at(rows, i, payloads->arena);
		size_t at;
		enum fate fate = row_ordinal(&row, payloads->len, &at, error);
		if (fate != FATE_OK)
			return fate;
		payloads->items[at]->sealed.body = row_bytes(&row);
		fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

static void send_undated(struct store *store, struct payloads *payloads)
{
	struct params *params = store_params(store);

	param_array(params, PG_UUID, payloads->len);
	for (size_t i = 0; i < payloads->len; i++)
		item_uuid(params, &payloads->items[i]->id);
	store_send(store, &select_payloads, params,
	           &(struct answer){ .rows = body_rows, .context = payloads, .by_row = true });
}

/* ---- by the day ---- */

struct dated {
	int32_t day;
	struct checkpoint *checkpoint;
};

/* Those of one day, sorted by id. */
struct day {
	struct arena *arena;
	const struct dated *items;
	size_t len;
};

static int compare_ids(const void *a, const void *b)
{
	return uuid_compare(&((const struct dated *)a)->checkpoint->id,
	                    &((const struct dated *)b)->checkpoint->id);
}

static int compare_dated(const void *a, const void *b)
{
	const struct dated *left = a;
	const struct dated *right = b;

	return left->day != right->day ? (left->day > right->day) - (left->day < right->day) : compare_ids(a, b);
}

static enum fate dated_row(const struct day *day, struct row *row, struct error *error)
{
	struct checkpoint wanted = { .id = row_uuid(row) };
	struct dated key = { 0, &wanted };
	struct view body = row_bytes(row);
	enum fate fate = row_end(row, error);
	if (fate != FATE_OK)
		return fate;
	const struct dated *found = bsearch(&key, day->items, day->len, sizeof(key), compare_ids);
	if (found == NULL)
		return error_set(error, FATE_FATAL, ERR_BUG,
		                 "PostgreSQL, reading payloads: one that was not asked for");
	found->checkpoint->sealed.body = body;
	return FATE_OK;
}

static enum fate dated_rows(void *context, const PGresult *rows, struct error *error)
{
	const struct day *day = context;
	enum fate fate = FATE_OK;

	for (int i = 0; i < PQntuples(rows) && fate == FATE_OK; i++) {
		struct row row = row_at(rows, i, day->arena);
		fate = dated_row(day, &row, error);
	}
	return fate;
}

static void send_day(struct store *store, struct day *day)
{
	struct params *params = store_params(store);

	param_int4(params, day->items[0].day);
	param_array(params, PG_UUID, day->len);
	for (size_t i = 0; i < day->len; i++)
		item_uuid(params, &day->items[i].checkpoint->id);
	store_send(store, &select_of_day, params,
	           &(struct answer){ .rows = dated_rows, .context = day, .by_row = true });
}

enum fate payloads_send(struct store *store, struct payloads *payloads, struct error *error)
{
	struct dated *dated = arena_array(payloads->arena, payloads->len, sizeof(*dated));
	struct day *days = arena_array(payloads->arena, payloads->len, sizeof(*days));
	size_t end;

	if (dated == NULL || days == NULL)
		return list_no_memory(error);
	for (size_t i = 0; i < payloads->len; i++)
		dated[i] = (struct dated){ payloads->days[i], payloads->items[i] };
	qsort(dated, payloads->len, sizeof(*dated), compare_dated);
	for (size_t first = 0; first < payloads->len; first = end) {
		for (end = first; end < payloads->len && dated[end].day == dated[first].day;)
			end++;
		*days = (struct day){ payloads->arena, dated + first, end - first };
		send_day(store, days++);
	}
	return FATE_OK;
}

enum fate store_payloads(struct store *store, struct checkpoint **checkpoints, size_t len,
                         struct arena *arena, struct error *error)
{
	struct payloads payloads = { .arena = arena, .items = checkpoints, .len = len };

	for (size_t i = 0; i < len; i++)
		checkpoints[i]->sealed.body = VIEW_NULL;
	enum fate fate = transaction_begin(store, TRANSACTION_READ, error);
	if (fate != FATE_OK)
		return fate;
	send_undated(store, &payloads);
	return transaction_finish(store, error);
}

enum fate store_payload(struct store *store, struct checkpoint *checkpoint, struct arena *arena,
                        struct error *error)
{
	enum fate fate = store_payloads(store, &checkpoint, 1, arena, error);

	if (fate != FATE_OK || !view_is_null(checkpoint->sealed.body))
		return fate;
	return error_set(error, FATE_REJECT, ERR_NO,
	                 "its sealed state is gone, retention.payload after it was settled");
}

/* ---- edits ---- */

static const struct statement select_edits = {
	"reading edits",
	"SELECT u.n, d.edits_body FROM unnest($1::uuid[]) WITH ORDINALITY u (id, n)"
	" JOIN fermata.decision d ON d.decision_id = ANY (ARRAY[u.id])",
};

static enum fate edits_rows(void *context, const PGresult *rows, struct error *error)
{
	const struct edits_wanted *wanted = context;

	for (int i = 0; i < PQntuples(rows); i++) {
		struct row row = row_at(rows, i, wanted->arena);
		size_t at;
		enum fate fate = row_ordinal(&row, wanted->len, &at, error);
		if (fate != FATE_OK)
			return fate;
		wanted->items[at]->edits.body = row_bytes(&row);
		fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

void edits_send(struct store *store, struct edits_wanted *wanted)
{
	if (wanted->len == 0)
		return;
	struct params *params = store_params(store);
	param_array(params, PG_UUID, wanted->len);
	for (size_t i = 0; i < wanted->len; i++)
		item_uuid(params, &wanted->items[i]->id);
	store_send(store, &select_edits, params, &(struct answer){ .rows = edits_rows, .context = wanted });
}
