#include "store/store_payloads.h"

#include "store/store_row.h"

static const struct statement select_payloads = {
	"reading payloads",
	"SELECT u.n, p.body FROM unnest($1::uuid[]) WITH ORDINALITY u (id, n)"
	" JOIN fermata.checkpoint c ON c.checkpoint_id = ANY (ARRAY[u.id])"
	" JOIN fermata.payload p ON p.checkpoint_id = ANY (ARRAY[c.checkpoint_id]) AND p.day = c.payload_day",
};

/* The row of checkpoint was read before, in the same snapshot. */
static const struct statement select_dated = {
	"reading payloads of known days",
	"SELECT u.n, p.body FROM unnest($1::uuid[], $2::integer[]) WITH ORDINALITY u (id, day, n)"
	" JOIN fermata.payload p ON p.checkpoint_id = ANY (ARRAY[u.id]) AND p.day = '2000-01-01'::date + u.day",
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

void payloads_send(struct store *store, struct payloads *payloads)
{
	struct params *params = store_params(store);

	param_array(params, PG_UUID, payloads->len);
	for (size_t i = 0; i < payloads->len; i++)
		item_uuid(params, &payloads->items[i]->id);
	if (payloads->days != NULL) {
		param_array(params, PG_INT4, payloads->len);
		for (size_t i = 0; i < payloads->len; i++)
			item_int4(params, payloads->days[i]);
	}
	store_send(store, payloads->days != NULL ? &select_dated : &select_payloads, params,
	           &(struct answer){ .rows = body_rows, .context = payloads, .by_row = true });
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
	payloads_send(store, &payloads);
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
