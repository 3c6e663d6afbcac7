#include "store/store_connection.h"
#include "store/store_record.h"

#define LIMIT_DEFAULT 1000000
#define PAGE_ROWS     500

/* ---- statements ---- */

/* $1 to $4: tenant, agent, state, some states; then the size of the page. A null is no wish. */
#define WISHES                                                                                               \
	" AND ($1::text IS NULL OR c.tenant = $1::text) AND ($2::text IS NULL OR c.agent = $2::text)"            \
	" AND ($3::text IS NULL OR c.state = $3::text::fermata.gate_state)"                                      \
	" AND ($4::text IS NULL OR c.state = 'PENDING' OR (c.state = 'QUARANTINED' AND c.verdict IS NULL)"       \
	" OR ($4::text = 'waiting' AND c.state IN ('DECIDED', 'QUARANTINED', 'IN_DOUBT')))"

/* In the order of (appended_at, checkpoint_id), by the index of appended_at alone: what has the time of the last one comes whole
 * out of it, and is put in order then. */
#define PAGE_BEGIN "SELECT " CHECKPOINT_COLUMNS " FROM (SELECT * FROM fermata.checkpoint c WHERE "
#define PAGE_END                                                                                             \
	" ORDER BY c.appended_at FETCH FIRST ($5::integer) ROWS WITH TIES) c" CHECKPOINT_COMMON                  \
	" ORDER BY c.appended_at, uuid_send(c.checkpoint_id) LIMIT $5::integer"

/* Rows whose suspend event is known, from (appended_at, checkpoint_id) on. */
static const struct statement page_by_time = {
	"listing checkpoints",
	PAGE_BEGIN
	"(c.appended_at, uuid_send(c.checkpoint_id)) >= ($6::bigint, uuid_send($7::uuid))" WISHES PAGE_END,
};

static const struct statement page_by_session = {
	"listing checkpoints of a session",
	PAGE_BEGIN "(c.appended_at, uuid_send(c.checkpoint_id)) >= ($6::bigint, uuid_send($7::uuid))"
			   " AND hashtext(c.session_id) = hashtext($8::text) AND c.session_id = $8::text" WISHES PAGE_END,
};

/* Rows whose suspend event is not known have no time: they come last, by id. */
static const struct statement page_without_time = {
	"listing checkpoints without a suspend event",
	"SELECT " CHECKPOINT_COLUMNS " FROM fermata.checkpoint c" CHECKPOINT_COMMON
	" WHERE c.appended_at IS NULL AND uuid_send(c.checkpoint_id) >= uuid_send($6::uuid)" WISHES
	" ORDER BY uuid_send(c.checkpoint_id) LIMIT $5::integer",
};

static const struct statement one_checkpoint = {
	"reading a checkpoint",
	PAGE_BEGIN "c.checkpoint_id = $6::uuid" WISHES PAGE_END,
};

static const struct statement select_decisions = {
	"reading the decisions of a checkpoint",
	"SELECT " DECISION_COLUMNS ", d.edits_body FROM fermata.decision d WHERE d.checkpoint_id = $1::uuid"
	" ORDER BY d.seq",
};

/* ---- listing ---- */

struct listing {
	struct store *store;
	const struct checkpoint_filter *filter;
	struct arena *arena;
	store_each_checkpoint *each;
	void *context;
	size_t left; /* how many may still be given */
	bool stopped;

	/* The last row that was given: the next page begins with it, and it is passed over there. */
	bool has_after;
	int64_t after_time;
	struct uuid after_id;
};

static void param_wishes(struct params *params, const struct listing *listing, size_t rows)
{
	const struct checkpoint_filter *filter = listing->filter;

	param_text(params, filter->tenant);
	param_text(params, filter->agent);
	param_name(params, filter->has_state ? gate_state_name(filter->state) : NULL);
	param_name(params, filter->waiting ? "waiting" : filter->open_only ? "open" : NULL);
	param_int4(params, (int32_t)rows);
}

static void param_after(struct params *params, const struct listing *listing, const struct statement *page)
{
	if (page == &one_checkpoint) {
		param_uuid(params, listing->filter->checkpoint_id);
		return;
	}
	if (page != &page_without_time)
		param_int8(params, listing->after_time);
	param_uuid(params, &listing->after_id);
	if (page == &page_by_session)
		param_text(params, listing->filter->session_id);
}

static void give(struct listing *listing, const struct checkpoint_list *list)
{
	for (size_t i = 0; i < list->len && !listing->stopped; i++) {
		if (listing->has_after && uuid_compare(&listing->after_id, &list->items[i]->id) == 0)
			continue;
		listing->has_after = true;
		listing->after_time = list->items[i]->appended_at;
		listing->after_id = list->items[i]->id;
		listing->left--;
		listing->stopped = !listing->each(listing->context, list->items[i]) || listing->left == 0;
	}
}

/* One page; *ret_more: there may be another one. */
static enum fate give_page(struct listing *listing, const struct statement *page, bool *ret_more,
                           struct error *error)
{
	size_t rows = (listing->left < PAGE_ROWS ? listing->left : PAGE_ROWS) + 1;
	struct checkpoint_list list = { .arena = listing->arena };
	enum fate fate = transaction_begin(listing->store, TRANSACTION_READ, error);

	if (fate != FATE_OK)
		return fate;
	arena_reset(listing->arena);
	struct params *params = store_params(listing->store);
	param_wishes(params, listing, rows);
	param_after(params, listing, page);
	store_send(listing->store, page, params,
	           &(struct answer){ .rows = checkpoint_list_rows, .context = &list });
	fate = transaction_finish(listing->store, error);
	if (fate != FATE_OK)
		return fate;
	give(listing, &list);
	*ret_more = list.len == rows && !listing->stopped && page != &one_checkpoint;
	return FATE_OK;
}

static enum fate give_pages(struct listing *listing, const struct statement *page, struct error *error)
{
	enum fate fate = FATE_OK;
	bool more = !listing->stopped;

	listing->has_after = false;
	listing->after_time = INT64_MIN;
	listing->after_id = (struct uuid){ { 0 } };
	while (fate == FATE_OK && more)
		fate = give_page(listing, page, &more, error);
	return fate;
}

/* Can a row without its suspend event be meant? */
static bool wants_unfilled(const struct checkpoint_filter *filter)
{
	return view_is_null(filter->session_id) && view_is_null(filter->tenant) && view_is_null(filter->agent) &&
	       !filter->open_only && !filter->waiting;
}

enum fate store_checkpoints(struct store *store, const struct checkpoint_filter *filter, struct arena *arena,
                            store_each_checkpoint *each, void *context, struct error *error)
{
	struct listing listing = {
		.store = store,
		.filter = filter,
		.arena = arena,
		.each = each,
		.context = context,
		.left = filter->limit != 0 ? filter->limit : LIMIT_DEFAULT,
	};

	if (filter->checkpoint_id != NULL)
		return give_pages(&listing, &one_checkpoint, error);
	if (!view_is_null(filter->session_id))
		return give_pages(&listing, &page_by_session, error);
	enum fate fate = give_pages(&listing, &page_by_time, error);
	if (fate == FATE_OK && wants_unfilled(filter))
		fate = give_pages(&listing, &page_without_time, error);
	return fate;
}

/* ---- one checkpoint ---- */

enum fate store_decisions(struct store *store, const struct uuid *checkpoint_id, struct arena *arena,
                          struct decision ***ret_decisions, size_t *ret_len, struct error *error)
{
	struct decision_list list = { .arena = arena };
	enum fate fate = transaction_begin(store, TRANSACTION_READ, error);

	*ret_decisions = NULL;
	*ret_len = 0;
	if (fate != FATE_OK)
		return fate;
	struct params *params = store_params(store);
	param_uuid(params, checkpoint_id);
	store_send(store, &select_decisions, params,
	           &(struct answer){ .rows = decision_list_rows, .context = &list });
	fate = transaction_finish(store, error);
	if (fate != FATE_OK)
		return fate;
	*ret_decisions = list.items;
	*ret_len = list.len;
	return FATE_OK;
}
