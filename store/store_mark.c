/* R5: what a relay has published is marked; and what it cannot publish is set aside. (See store_ledger.c.) */
#include "store/store_ledger.h"
#include "store/store_record.h"

#include <stdlib.h>

/* ---- statements ---- */

/* The ids come sorted, so that rows are locked in that order, which is intake's. What was erased while it was being
 * published is settled already. */
static const struct statement mark_resumed = {
	"marking what was published",
	"UPDATE fermata.checkpoint c SET state = 'RESUMED', published = true,"
	" version = greatest(c.version, u.version), changed_at = $3::bigint"
	" FROM unnest($1::uuid[], $2::bigint[]) u (id, version)"
	" WHERE c.checkpoint_id = ANY (ARRAY[u.id])"
	" AND (c.state = 'DECIDED' OR (c.state = 'RESUMED' AND c.filled AND c.wrapped_key IS NULL))",
};

/* Sorted, too: intake may be raising some of them at this moment. */
static const struct statement delete_gates = {
	"taking out gate events",
	"DELETE FROM fermata.gate_outbox g USING unnest($1::uuid[], $2::bigint[]) u (id, version)"
	" WHERE g.checkpoint_id = ANY (ARRAY[u.id]) AND g.version <= u.version",
};

/* Sorted like the others. What was erased meanwhile has a tombstone waiting, in a higher version. */
static const struct statement tell_later = {
	"queueing gate events of what was published",
	"INSERT INTO fermata.gate_outbox AS g (checkpoint_id, topic, partition, version)"
	" SELECT u.id, $3::text, $4::integer, u.version FROM unnest($1::uuid[], $2::bigint[]) u (id, version)"
	" ON CONFLICT (checkpoint_id) DO UPDATE SET version = greatest(g.version, excluded.version)",
};

static const struct statement commit_lazily = {
	"not waiting for the disk",
	"SET LOCAL synchronous_commit = off",
};

static const struct statement set_aside = {
	"setting aside",
	"WITH changed AS ("
	"UPDATE fermata.checkpoint c SET state = $2::text::fermata.gate_state, reason = $3::text,"
	" version = greatest(version + 1, $4::bigint), changed_at = $4::bigint"
	" WHERE checkpoint_id = $1::uuid"
	" AND (state = 'DECIDED' OR (state = 'PENDING' AND $2::text = 'QUARANTINED'))"
	" RETURNING c.checkpoint_id, c.filled, " SQL_COMMON(
		"resumes_topic") " AS resumes_topic,"
						 " c.resumes_partition, c.version"
						 "), told AS ("
						 "INSERT INTO fermata.gate_outbox AS g (checkpoint_id, topic, partition, version)"
						 " SELECT checkpoint_id, resumes_topic, resumes_partition, version FROM changed"
						 " WHERE filled AND resumes_topic IS NOT NULL"
						 " ON CONFLICT (checkpoint_id) DO UPDATE SET version = greatest(g.version, "
						 "excluded.version)"
						 ") SELECT count(*) FROM changed",
};

/* ---- R5 ---- */

static int compare_sent(const void *a, const void *b)
{
	const struct gate_sent *left = a;
	const struct gate_sent *right = b;

	return uuid_compare(&left->checkpoint_id, &right->checkpoint_id);
}

typedef bool which_sent(const struct gate_sent *sent);

static bool is_sent(const struct gate_sent *sent)
{
	(void)sent;
	return true;
}

static bool is_told(const struct gate_sent *sent)
{
	return sent->waiting == WAITING_GOES;
}

static bool is_later(const struct gate_sent *sent)
{
	return sent->waiting == WAITING_COMES;
}

/* Copies of those of the first that are asked for, and of the second, in the order in which intake locks rows. */
static struct gate_sent *sort_sent(const struct gate_sent *first, size_t first_len, which_sent *which,
                                   const struct gate_sent *second, size_t second_len, size_t *ret_len)
{
	struct gate_sent *all = calloc(first_len + second_len + 1, sizeof(*all));
	size_t len = 0;

	if (all == NULL)
		return NULL;
	for (size_t i = 0; i < first_len; i++)
		if (which(&first[i]))
			all[len++] = first[i];
	for (size_t i = 0; i < second_len; i++)
		all[len++] = second[i];
	qsort(all, len, sizeof(*all), compare_sent);
	*ret_len = len;
	return all;
}

static void param_sent_ids(struct params *params, const struct gate_sent *sent, size_t len)
{
	param_array(params, PG_UUID, len);
	for (size_t i = 0; i < len; i++)
		item_uuid(params, &sent[i].checkpoint_id);
}

static void param_sent(struct params *params, const struct gate_sent *sent, size_t len)
{
	param_sent_ids(params, sent, len);
	param_array(params, PG_INT8, len);
	for (size_t i = 0; i < len; i++)
		item_int8(params, sent[i].version);
}

static void send_resumed(struct store *store, const struct gate_sent *resumed, size_t len, int64_t now,
                         int64_t *add_count)
{
	if (len == 0)
		return;
	struct params *params = store_params(store);
	param_sent(params, resumed, len);
	param_int8(params, now);
	store_send(store, &mark_resumed, params, &(struct answer){ .add_count = add_count });
	params = store_params(store);
	param_sent_ids(params, resumed, len);
	store_send(store, &ledger_outbox_delete, params, NULL);
}

static void send_gates(struct store *store, const struct gate_sent *gates, size_t len)
{
	if (len == 0)
		return;
	struct params *params = store_params(store);
	param_sent(params, gates, len);
	store_send(store, &delete_gates, params, NULL);
}

static void send_later(struct store *store, const struct shard *shard, const struct gate_sent *later,
                       size_t len)
{
	if (len == 0)
		return;
	struct params *params = store_params(store);
	param_sent(params, later, len);
	param_name(params, shard->topic);
	param_int4(params, shard->partition);
	store_send(store, &tell_later, params, NULL);
}

/* What R5 writes, sorted by id. */
struct marks {
	struct gate_sent *resumed;
	size_t resumed_len;
	struct gate_sent *gates; /* those that were told of the resumed among them */
	size_t gates_len;
	struct gate_sent *later; /* of the resumed, those that are not told yet */
	size_t later_len;
};

static enum fate mark_all(struct store *store, const struct shard *shard, int64_t mine, int64_t next,
                          const struct marks *marks, int64_t now, struct error *error)
{
	int64_t moved = 0;
	int64_t marked = 0;
	enum fate fate = transaction_begin(store, TRANSACTION_WRITE, error);

	if (fate != FATE_OK)
		return fate;
	store_send(store, &commit_lazily, NULL, NULL);
	send_resumed(store, marks->resumed, marks->resumed_len, now, &marked);
	send_gates(store, marks->gates, marks->gates_len);
	send_later(store, shard, marks->later, marks->later_len);
	ledger_move_send(store, shard, mine, next, &moved);
	fate = transaction_flush(store, error);
	if (fate == FATE_OK && marked != (int64_t)marks->resumed_len)
		return transaction_stale(
			store, error, "a checkpoint that was published is not DECIDED here: the database went back");
	return ledger_commit_moved(store, fate, moved, FAILPOINT_RELAY_MARK_OPEN, error);
}

enum fate store_relay_mark(struct store *store, const struct shard *shard, int64_t mine, int64_t next,
                           const struct gate_sent *resumed, size_t resumed_len, const struct gate_sent *gates,
                           size_t gates_len, int64_t now, struct error *error)
{
	struct marks marks = { .resumed = NULL };
	enum fate fate;

	marks.resumed = sort_sent(resumed, resumed_len, is_sent, NULL, 0, &marks.resumed_len);
	marks.gates = sort_sent(resumed, resumed_len, is_told, gates, gates_len, &marks.gates_len);
	marks.later = sort_sent(resumed, resumed_len, is_later, NULL, 0, &marks.later_len);

	if (marks.resumed != NULL && marks.gates != NULL && marks.later != NULL)
		fate = mark_all(store, shard, mine, next, &marks, now, error);
	else
		fate = error_set(error, FATE_RETRY, ERR_MEMORY, "PostgreSQL, marking what was published: no memory");
	free(marks.resumed);
	free(marks.gates);
	free(marks.later);
	return fate;
}

/* ---- set aside ---- */

enum fate store_relay_set_aside(struct store *store, const struct shard *shard, int64_t mine,
                                const struct uuid *checkpoint_id, enum gate_state state, const char *reason,
                                int64_t now, struct error *error)
{
	int64_t moved = 0;
	int64_t changed = 0;
	enum fate fate = transaction_begin(store, TRANSACTION_WRITE, error);

	if (fate != FATE_OK)
		return fate;
	struct params *params = store_params(store);
	param_uuid(params, checkpoint_id);
	param_name(params, gate_state_name(state));
	param_name(params, reason);
	param_int8(params, now);
	store_send(store, &set_aside, params, &(struct answer){ .rows = row_number, .context = &changed });
	params = store_params(store);
	param_uuids(params, checkpoint_id, 1);
	store_send(store, &ledger_outbox_delete, params, NULL);
	ledger_move_send(store, shard, mine, mine, &moved);
	fate = transaction_flush(store, error);
	if (fate == FATE_OK && changed != 1)
		return transaction_stale(store, error,
		                         "the checkpoint that was to be set aside is not waiting any more");
	return ledger_commit_moved(store, fate, moved, FAILPOINT_RELAY_ASIDE_OPEN, error);
}
