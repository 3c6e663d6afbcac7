/* R3: what a relay is to publish, and its ledger's position, in one snapshot. */
#include "store/store_connection.h"
#include "store/store_payloads.h"
#include "store/store_record.h"

#include <stdlib.h>
#include <string.h>

/* ---- statements ---- */

/* Ready: no partition of a resumes topic is without a ledger that was read under today's routes. */
static const struct statement select_ready = {
	"reading the ledger's position and the others",
	"SELECT " LEDGER_COLUMNS ", NOT EXISTS ("
	"SELECT FROM fermata.resumes_topic t CROSS JOIN LATERAL generate_series(0, t.partitions - 1) p (n)"
	" WHERE NOT EXISTS (SELECT FROM fermata.ledger_offset o WHERE o.cluster_id = $1::text AND o.topic = "
	"t.topic"
	" AND o.partition = p.n AND o.routes_digest = $4::bytea))"
	" FROM fermata.ledger_offset l"
	" WHERE l.cluster_id = $1::text AND l.topic = $2::text AND l.partition = $3::integer",
};

/* With the decisions that counted, but for what is large of them: a row for each, or one without. The limit is one of
 * checkpoints. */
static const struct statement select_outbox = {
	"reading the outbox",
	"SELECT c.seq, coalesce(c.sealed_len, 0)::bigint, coalesce(octet_length(d.edits_body), "
	"0)::bigint, " SQL_DAY ", " CHECKPOINT_COLUMNS ", " DECISION_COLUMNS
	" FROM (SELECT o.seq, k.* FROM fermata.outbox o"
	" JOIN fermata.checkpoint k ON k.checkpoint_id = ANY (ARRAY[o.checkpoint_id])"
	" WHERE o.topic = $1::text AND o.partition = $2::integer AND k.state = 'DECIDED'"
	" AND o.checkpoint_id <> ALL ($3::uuid[]) ORDER BY o.seq LIMIT $4::integer) c"
	" LEFT JOIN fermata.decision d ON d.checkpoint_id = ANY (ARRAY[c.checkpoint_id]) AND d.outcome = "
	"'counted'" CHECKPOINT_COMMON " ORDER BY c.seq, d.seq",
};

static const struct statement select_gates = {
	"reading the outbox of gate events",
	"SELECT checkpoint_id, version FROM fermata.gate_outbox WHERE topic = $1::text"
	" AND partition = $2::integer AND checkpoint_id <> ALL ($3::uuid[]) LIMIT $4::integer",
};

/* Without its checkpoint when that was purged. What is DECIDED is about to be resumed, with the gate event of that in
 * the same transaction or after it, and is left to it unless nothing can be taken out of the outbox now ($3). */
static const struct statement select_gate_rows = {
	"reading what gate events tell of",
	"SELECT g.id, g.version, coalesce(c.sealed_len, 0)::bigint, " SQL_DAY ", " CHECKPOINT_COLUMNS
	" FROM unnest($1::uuid[], $2::bigint[]) g (id, version)"
	" LEFT JOIN fermata.checkpoint c ON c.checkpoint_id = ANY (ARRAY[g.id])" CHECKPOINT_COMMON
	" WHERE coalesce(c.filled, true) AND ($3::boolean OR c.state IS DISTINCT FROM 'DECIDED')",
};

/* ---- what comes back ---- */

/* Rows that may be taken: what they weigh decides how many of them are. */
struct candidate {
	int64_t number; /* the outbox's seq or the gate event's version */
	int64_t bytes;
	int32_t day; /* of its payload */
	struct checkpoint *checkpoint;
	struct decision_list decisions; /* of the outbox's */
};

struct candidates {
	struct arena *arena;
	struct candidate *items;
	size_t len;
	size_t cap;
};

/* NULL: no memory. */
static struct candidate *add_candidate(struct candidates *list)
{
	struct candidate *items = list_room(list->arena, list->items, list->len, &list->cap, sizeof(*items));
	struct checkpoint *checkpoint = arena_alloc(list->arena, sizeof(*checkpoint));

	if (items == NULL || checkpoint == NULL)
		return NULL;
	list->items = items;
	items[list->len] = (struct candidate){ .checkpoint = checkpoint, .decisions = { .arena = list->arena } };
	return &items[list->len++];
}

/* One more decision of the checkpoint that stood in the row before is no other candidate. */
static struct candidate *candidate_of(struct candidates *list, const struct checkpoint *checkpoint)
{
	struct candidate *last = list->len > 0 ? &list->items[list->len - 1] : NULL;

	if (last != NULL && uuid_compare(&last->checkpoint->id, &checkpoint->id) == 0)
		return last;
	last = add_candidate(list);
	if (last != NULL)
		*last->checkpoint = *checkpoint;
	return last;
}

static enum fate outbox_row(struct candidates *list, struct row *row, struct error *error)
{
	struct checkpoint checkpoint;
	struct decision decision;
	int64_t seq = row_int8(row);
	int64_t sealed_len = row_int8(row);
	int64_t edits_len = row_int8(row);
	int32_t day = row_int4(row);

	row_checkpoint(row, &checkpoint);
	bool decided = !row_is_null(row);
	if (decided)
		row_decision(row, &decision);
	else
		row_skip_decision(row);
	enum fate fate = row_end(row, error);
	if (fate != FATE_OK)
		return fate;
	struct candidate *candidate = candidate_of(list, &checkpoint);
	struct decision *copy = candidate != NULL && decided ? decision_list_add(&candidate->decisions) : NULL;
	if (candidate == NULL || (decided && copy == NULL))
		return list_no_memory(error);
	candidate->number = seq;
	candidate->day = day;
	candidate->bytes += candidate->decisions.len <= 1 ? sealed_len + edits_len : edits_len;
	if (decided)
		*copy = decision;
	return FATE_OK;
}

static enum fate outbox_rows(void *context, const PGresult *rows, struct error *error)
{
	struct candidates *list = context;
	enum fate fate = FATE_OK;

	for (int i = 0; i < PQntuples(rows) && fate == FATE_OK; i++) {
		struct row row = row_at(rows, i, list->arena);
		fate = outbox_row(list, &row, error);
	}
	return fate;
}

static enum fate candidate_rows(void *context, const PGresult *rows, struct error *error)
{
	struct candidates *list = context;

	for (int i = 0; i < PQntuples(rows); i++) {
		struct candidate *candidate = add_candidate(list);
		if (candidate == NULL)
			return list_no_memory(error);
		struct row row = row_at(rows, i, list->arena);
		struct uuid id = row_uuid(&row);
		candidate->number = row_int8(&row);
		candidate->bytes = row_int8(&row);
		candidate->day = row_int4(&row);
		row_checkpoint(&row, candidate->checkpoint);
		candidate->checkpoint->id = id;
		enum fate fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

struct gate_list {
	struct arena *arena;
	struct gate_sent *items;
	size_t len;
	size_t cap;
};

static enum fate gate_rows(void *context, const PGresult *rows, struct error *error)
{
	struct gate_list *list = context;

	for (int i = 0; i < PQntuples(rows); i++) {
		struct gate_sent *items =
			list_room(list->arena, list->items, list->len, &list->cap, sizeof(*list->items));
		if (items == NULL)
			return list_no_memory(error);
		list->items = items;
		struct row row = row_at(rows, i, NULL);
		items[list->len].checkpoint_id = row_uuid(&row);
		items[list->len++].version = row_int8(&row);
		enum fate fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

static enum fate ready_rows(void *context, const PGresult *rows, struct error *error)
{
	struct relay_take *take = context;
	struct row row = row_at(rows, 0, NULL);

	row_ledger(&row, &take->ledger);
	take->ready = row_bool(&row);
	return row_end(&row, error);
}

/* ---- sending ---- */

struct taking {
	const struct shard *shard;
	const struct relay_want *want;
	struct arena *arena;
	struct relay_take *take;
	struct candidates outbox;
	struct gate_list gates;   /* all that wait */
	size_t gates_waiting;     /* how many those were */
	struct candidates missed; /* of those that were not handed over */
};

static void send_list(struct store *store, const struct taking *taking, const struct statement *statement,
                      const struct answer *answer)
{
	struct params *params = store_params(store);

	param_name(params, taking->shard->topic);
	param_int4(params, taking->shard->partition);
	param_uuids(params, taking->want->skip, taking->want->skip_len);
	param_int4(params, (int32_t)(taking->want->rows < INT32_MAX ? taking->want->rows : INT32_MAX));
	store_send(store, statement, params, answer);
}

static void send_first(struct store *store, struct taking *taking)
{
	struct params *params = store_params(store);

	param_name(params, taking->shard->cluster_id);
	param_name(params, taking->shard->topic);
	param_int4(params, taking->shard->partition);
	param_bytes(params, (struct view){ taking->want->routes_digest, 32 });
	store_send(store, &select_ready, params, &(struct answer){ .rows = ready_rows, .context = taking->take });
	send_list(store, taking, &select_outbox,
	          &(struct answer){ .rows = outbox_rows, .context = &taking->outbox });
}

static void send_gate_list(struct store *store, struct taking *taking)
{
	send_list(store, taking, &select_gates, &(struct answer){ .rows = gate_rows, .context = &taking->gates });
}

static void send_missed(struct store *store, struct taking *taking)
{
	struct params *params = store_params(store);

	param_array(params, PG_UUID, taking->gates.len);
	for (size_t i = 0; i < taking->gates.len; i++)
		item_uuid(params, &taking->gates.items[i].checkpoint_id);
	param_array(params, PG_INT8, taking->gates.len);
	for (size_t i = 0; i < taking->gates.len; i++)
		item_int8(params, taking->gates.items[i].version);
	param_bool(params, taking->want->with_decided);
	store_send(store, &select_gate_rows, params,
	           &(struct answer){ .rows = candidate_rows, .context = &taking->missed });
}

/* ---- choosing ---- */

/* So few resumes that they go alone: their gate events would be a second partition of their transaction. */
static bool is_lone(const struct taking *taking)
{
	return taking->take->ready && taking->outbox.len > 0 && taking->outbox.len <= taking->want->lone &&
	       taking->outbox.len < taking->want->rows;
}

/* How many fit: one at least, then until the bytes are used up. */
static size_t fitting(const struct candidates *list, size_t *bytes_left)
{
	size_t len = 0;

	while (len < list->len && (len == 0 || (uint64_t)list->items[len].bytes <= *bytes_left)) {
		uint64_t bytes = (uint64_t)list->items[len++].bytes;
		*bytes_left -= bytes < *bytes_left ? (size_t)bytes : *bytes_left;
	}
	return len;
}

static enum fate choose_outbox(struct taking *taking, size_t *bytes_left, struct error *error)
{
	struct relay_take *take = taking->take;
	size_t len = take->ready ? fitting(&taking->outbox, bytes_left) : 0;

	take->lone = is_lone(taking) && len == taking->outbox.len;

	take->rows = arena_array(taking->arena, len, sizeof(*take->rows));
	if (take->rows == NULL)
		return list_no_memory(error);
	for (size_t i = 0; i < len; i++) {
		take->rows[i].seq = taking->outbox.items[i].number;
		take->rows[i].checkpoint = taking->outbox.items[i].checkpoint;
		take->rows[i].decisions = taking->outbox.items[i].decisions.items;
		take->rows[i].decisions_len = taking->outbox.items[i].decisions.len;
	}
	take->rows_len = len;
	take->more = !take->ready || len < taking->outbox.len || taking->outbox.len >= taking->want->rows;
	return FATE_OK;
}

/* A row that is taken, to be found by its id. */
struct taken {
	struct uuid id;
	struct outbox_row *row;
};

static int compare_taken(const void *a, const void *b)
{
	return uuid_compare(&((const struct taken *)a)->id, &((const struct taken *)b)->id);
}

/* Sorted; NULL: no memory. Where the list of gate events was cut short, something may wait of each of them. */
static struct taken *taken_rows(const struct taking *taking)
{
	const struct relay_take *take = taking->take;
	struct taken *taken = arena_array(taking->arena, take->rows_len, sizeof(*taken));
	bool whole = taking->gates.len < taking->want->rows;

	for (size_t i = 0; i < take->rows_len && taken != NULL; i++) {
		take->rows[i].untold = whole;
		taken[i] = (struct taken){ take->rows[i].checkpoint->id, &take->rows[i] };
	}
	if (taken != NULL)
		qsort(taken, take->rows_len, sizeof(*taken), compare_taken);
	return taken;
}

static bool is_taken(const struct taking *taking, const struct taken *taken, const struct uuid *id)
{
	const struct taken key = { *id, NULL };
	const struct taken *found = bsearch(&key, taken, taking->take->rows_len, sizeof(key), compare_taken);

	if (found != NULL)
		found->row->untold = false;
	return found != NULL;
}

static enum fate add_handed(struct taking *taking, const struct gate_sent *gate, const void *handed,
                            struct error *error)
{
	struct checkpoint *checkpoint = arena_alloc(taking->arena, sizeof(*checkpoint));

	if (checkpoint == NULL)
		return list_no_memory(error);
	checkpoint->id = gate->checkpoint_id;
	taking->take->gates[taking->take->gates_len++] =
		(struct gate_row){ .checkpoint = checkpoint, .version = gate->version, .handed = handed };
	return FATE_OK;
}

/* What is resumed now has its gate event written by the relay: the one that waits is older. What was handed over is
 * taken, and takes of the bytes; what is left in the list is read. */
static enum fate sort_gates(struct taking *taking, size_t *bytes_left, struct error *error)
{
	struct relay_take *take = taking->take;
	struct gate_list *list = &taking->gates;
	struct taken *taken = taken_rows(taking);
	size_t kept = 0;
	enum fate fate = FATE_OK;

	taking->gates_waiting = list->len;
	take->gates = arena_array(taking->arena, list->len, sizeof(*take->gates));
	if (take->gates == NULL || taken == NULL)
		return list_no_memory(error);
	for (size_t i = 0; i < list->len && fate == FATE_OK; i++) {
		const struct gate_sent *gate = &list->items[i];
		size_t bytes = 0;
		if (is_taken(taking, taken, &gate->checkpoint_id))
			continue;
		const void *handed = taking->want->handed == NULL
		                         ? NULL
		                         : taking->want->handed->find(taking->want->handed->context,
		                                                      &gate->checkpoint_id, gate->version, &bytes);
		*bytes_left -= bytes < *bytes_left ? bytes : *bytes_left;
		if (handed != NULL)
			fate = add_handed(taking, gate, handed, error);
		else
			list->items[kept++] = *gate;
	}
	list->len = kept;
	return fate;
}

/* What was not read of them is in the outbox. */
static void choose_missed(struct taking *taking, size_t *bytes_left)
{
	struct relay_take *take = taking->take;
	struct candidates *list = &taking->missed;

	for (size_t i = 0; i < list->len && !taking->want->with_action; i++)
		list->items[i].bytes = 0;
	size_t len = fitting(list, bytes_left);
	take->more =
		take->more || taking->gates_waiting + taking->outbox.len >= taking->want->rows || len < list->len;
	for (size_t i = 0; i < len; i++)
		take->gates[take->gates_len++] = (struct gate_row){
			.checkpoint = list->items[i].checkpoint,
			.version = list->items[i].number,
			.gone = !list->items[i].checkpoint->sealed.has_key,
		};
	list->len = len;
}

/* ---- the second half: what is large ---- */

static enum fate find_edits(const struct taking *taking, struct edits_wanted *wanted, struct error *error)
{
	const struct relay_take *take = taking->take;
	size_t most = 0;

	for (size_t i = 0; i < take->rows_len; i++)
		most += take->rows[i].decisions_len;
	*wanted = (struct edits_wanted){ .arena = taking->arena };
	wanted->items = arena_array(taking->arena, most, sizeof(*wanted->items));
	if (wanted->items == NULL)
		return list_no_memory(error);
	for (size_t i = 0; i < take->rows_len; i++)
		for (size_t j = 0; j < take->rows[i].decisions_len; j++)
			if (take->rows[i].decisions[j]->has_edits)
				wanted->items[wanted->len++] = take->rows[i].decisions[j];
	return FATE_OK;
}

static enum fate send_bodies(struct store *store, struct taking *taking, const struct candidates *list,
                             size_t len, struct payloads *bodies, struct error *error)
{
	int32_t *days = arena_array(taking->arena, len, sizeof(*days));

	*bodies = (struct payloads){ .arena = taking->arena, .days = days };
	bodies->items = arena_array(taking->arena, len, sizeof(struct checkpoint *));
	if (bodies->items == NULL || days == NULL)
		return list_no_memory(error);
	for (size_t i = 0; i < len; i++) {
		if (list == &taking->missed && !list->items[i].checkpoint->sealed.has_key)
			continue; /* gone */
		days[bodies->len] = list->items[i].day;
		bodies->items[bodies->len++] = list->items[i].checkpoint;
	}
	return payloads_send(store, bodies, error);
}

/* Of what is resumed edits and bodies, of gate events that were not handed over the rows and, where the action is
 * told, then the bodies. */
static enum fate take_rest(struct store *store, struct taking *taking, size_t *bytes_left,
                           struct error *error)
{
	struct edits_wanted edits;
	struct payloads of_rows, of_gates;
	enum fate fate = find_edits(taking, &edits, error);

	if (fate == FATE_OK) {
		edits_send(store, &edits);
		fate = send_bodies(store, taking, &taking->outbox, taking->take->rows_len, &of_rows, error);
	}
	if (fate == FATE_OK && !taking->take->lone && taking->gates.len > 0) {
		send_missed(store, taking);
		fate = transaction_flush(store, error);
	}
	if (fate != FATE_OK)
		return fate;
	choose_missed(taking, bytes_left);
	if (taking->want->with_action)
		fate = send_bodies(store, taking, &taking->missed, taking->missed.len, &of_gates, error);
	return fate == FATE_OK ? transaction_finish(store, error) : fate;
}

static enum fate begin(struct store *store, const struct taking *taking, struct error *error)
{
	memset(taking->take, 0, sizeof(*taking->take));
	taking->take->ledger = (struct ledger){ .next = LEDGER_NONE, .doubt.before = TIME_NONE };
	return transaction_begin(store, TRANSACTION_SNAPSHOT, error);
}

static enum fate take_all(struct store *store, struct taking *taking, struct error *error)
{
	size_t bytes_left = taking->want->bytes;
	enum fate fate = begin(store, taking, error);

	if (fate != FATE_OK)
		return fate;
	send_first(store, taking);
	send_gate_list(store, taking);
	fate = transaction_flush(store, error);
	if (fate == FATE_OK)
		fate = choose_outbox(taking, &bytes_left, error);
	if (fate == FATE_OK && !taking->take->lone)
		fate = sort_gates(taking, &bytes_left, error);
	if (fate == FATE_OK)
		fate = take_rest(store, taking, &bytes_left, error);
	if (fate != FATE_OK)
		store_rollback(store);
	return fate;
}

/* ---- what was decided just now, in one go ---- */

/* Where its states are, unless they have waited for so long that their day was dropped. */
static enum fate send_fresh(struct store *store, const struct taking *taking, struct payloads *bodies,
                            struct error *error)
{
	size_t len = taking->want->handed->fresh_len;
	struct checkpoint *wanted = arena_array(taking->arena, len, sizeof(*wanted));
	int32_t *days = arena_array(taking->arena, len, sizeof(*days));

	*bodies = (struct payloads){ .arena = taking->arena, .days = days, .len = len };
	bodies->items = arena_array(taking->arena, len, sizeof(struct checkpoint *));
	if (wanted == NULL || days == NULL || bodies->items == NULL)
		return list_no_memory(error);
	for (size_t i = 0; i < len; i++) {
		const struct fresh *fresh = &taking->want->handed->fresh[i];
		wanted[i] = (struct checkpoint){ .id = fresh->id };
		days[i] = day_of(fresh->appended_at);
		bodies->items[i] = &wanted[i];
	}
	return payloads_send(store, bodies, error);
}

static bool has_edits(const struct candidate *candidate)
{
	for (size_t i = 0; i < candidate->decisions.len; i++)
		if (candidate->decisions.items[i]->has_edits)
			return true;
	return false;
}

/* Is everything there that the outbox has? On another day than the row says may lie what has outlived it. */
static bool place_bodies(const struct candidates *outbox, const struct payloads *bodies)
{
	for (size_t i = 0; i < outbox->len; i++) {
		struct checkpoint *checkpoint = outbox->items[i].checkpoint;
		for (size_t j = 0; j < bodies->len; j++)
			if (uuid_compare(&bodies->items[j]->id, &checkpoint->id) == 0 &&
			    bodies->days[j] == outbox->items[i].day)
				checkpoint->sealed.body = bodies->items[j]->sealed.body;
		if (view_is_null(checkpoint->sealed.body) || has_edits(&outbox->items[i]))
			return false;
	}
	return outbox->len > 0;
}

/* The second half is guessed, so that the first can be the only one; gate events stay behind. *ret_whole: it was guessed
 * rightly. */
static enum fate take_at_once(struct store *store, struct taking *taking, bool *ret_whole,
                              struct error *error)
{
	size_t bytes_left = taking->want->bytes;
	struct payloads bodies;
	enum fate fate = begin(store, taking, error);

	if (fate != FATE_OK)
		return fate;
	send_first(store, taking);
	fate = send_fresh(store, taking, &bodies, error);
	if (fate != FATE_OK) {
		store_rollback(store);
		return fate;
	}
	fate = transaction_finish(store, error);
	if (fate != FATE_OK || !taking->take->ready || !place_bodies(&taking->outbox, &bodies))
		return fate;
	fate = choose_outbox(taking, &bytes_left, error);
	*ret_whole = taking->take->lone;
	return fate;
}

enum fate store_relay_take(struct store *store, const struct shard *shard, const struct relay_want *want,
                           struct arena *arena, struct relay_take *ret_take, struct error *error)
{
	struct taking taking = {
		.shard = shard,
		.want = want,
		.arena = arena,
		.take = ret_take,
		.outbox.arena = arena,
		.gates.arena = arena,
		.missed.arena = arena,
	};
	struct taking at_once = taking;
	bool whole = false;
	enum fate fate = FATE_OK;

	if (want->lone > 0 && want->handed != NULL && want->handed->fresh_len > 0)
		fate = take_at_once(store, &at_once, &whole, error);
	return fate == FATE_OK && !whole ? take_all(store, &taking, error) : fate;
}
