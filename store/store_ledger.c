/*
 * What a relay writes: R2 and what is in doubt, and in store_mark.c R5 and what is set aside. Each is one transaction whose last
 * statement is the compare-and-set of ledger_offset; the order of the statements is the one of protocol.md. Checkpoints are
 * locked in the order of their ids, as intake does.
 */
#include "store/store_ledger.h"

#include "store/store_columns.h"
#include "store/store_record.h"
#include "store/store_row.h"

#include <stddef.h>
#include <stdlib.h>

/* ---- ledger_offset ---- */

static const struct statement select_ledger = {
	"reading the ledger's position",
	"SELECT " LEDGER_COLUMNS " FROM fermata.ledger_offset"
	" WHERE cluster_id = $1::text AND topic = $2::text AND partition = $3::integer",
};

static const struct statement make_ledger = {
	"making the ledger's position",
	"INSERT INTO fermata.ledger_offset (cluster_id, topic, partition, next, doubt_before, doubt_below,"
	" routes_digest)"
	" VALUES ($1::text, $2::text, $3::integer, $4::bigint, $5::bigint, $6::bigint, $7::bytea)"
	" ON CONFLICT (cluster_id, topic, partition) DO NOTHING",
};

static const struct statement advance_ledger = {
	"moving the ledger's position after reading it",
	"UPDATE fermata.ledger_offset SET next = $4::bigint, doubt_before = $5::bigint, doubt_below = $6::bigint,"
	" routes_digest = $7::bytea"
	" WHERE cluster_id = $1::text AND topic = $2::text AND partition = $3::integer AND next = $8::bigint",
};

static const struct statement move_ledger = {
	"moving the ledger's position",
	"UPDATE fermata.ledger_offset SET next = $4::bigint"
	" WHERE cluster_id = $1::text AND topic = $2::text AND partition = $3::integer AND next = $5::bigint",
};

/* ---- R2 ---- */

/*
 * $4 holds the ids of the decisions of all of them, $5 and $6 where those of each begin and end, $7 where it lies in
 * the ledger ($8 to $10): what was purged gets no row again, and one that a late decision made since then is left to
 * the sweep. What is RESUMED already is not touched. What the resume says stands above what the row says: it may have
 * been judged again in another order since (a restore, a rebuild). Decisions that come from now on are judged by it
 * (from_ledger), and settle_outcomes makes those that are there agree with it.
 */
static const struct statement upsert_resumed = {
	"marking what the ledger holds",
	"WITH marked AS ("
	"INSERT INTO fermata.checkpoint AS c (checkpoint_id, state, filled, published, from_ledger, verdict,"
	" decided_at, changed_at, ledger_decisions)"
	" SELECT f.id, 'RESUMED', false, true, true, f.verdict::fermata.verdict, f.appended_at, f.appended_at,"
	" ($4::uuid[])[f.first:f.last]"
	" FROM unnest($1::uuid[], $2::text[], $3::bigint[], $5::integer[], $6::integer[], $7::bigint[])"
	" f (id, verdict, appended_at, first, last, at)"
	" WHERE NOT EXISTS (SELECT FROM fermata.horizon h WHERE h.cluster_id = $8::text AND h.topic = $9::text"
	" AND h.partition = $10::integer AND f.at < h.below AND f.appended_at <= h.until)"
	" OR EXISTS (SELECT FROM fermata.checkpoint k WHERE k.checkpoint_id = ANY (ARRAY[f.id]) AND k.filled)"
	" ORDER BY f.id"
	" ON CONFLICT (checkpoint_id) DO UPDATE SET state = 'RESUMED', published = true,"
	" from_ledger = true, verdict = excluded.verdict,"
	" decided_at = coalesce(c.decided_at, excluded.decided_at),"
	" ledger_decisions = excluded.ledger_decisions, changed_at = excluded.changed_at,"
	" reason = CASE WHEN c.state = 'DECIDED' AND c.verdict = excluded.verdict THEN c.reason END,"
	" version = CASE WHEN c.filled THEN greatest(c.version + 1, excluded.changed_at) ELSE c.version END"
	" WHERE c.state <> 'RESUMED'"
	" RETURNING c.checkpoint_id, c.filled, " SQL_COMMON(
		"resumes_topic") " AS resumes_topic,"
						 " c.resumes_partition, c.version"
						 "), told AS ("
						 "INSERT INTO fermata.gate_outbox AS g (checkpoint_id, topic, partition, version)"
						 " SELECT checkpoint_id, resumes_topic, resumes_partition, version FROM marked"
						 " WHERE filled AND resumes_topic IS NOT NULL"
						 " ON CONFLICT (checkpoint_id) DO UPDATE SET version = greatest(g.version, "
						 "excluded.version)"
						 ") SELECT count(*) FROM marked",
};

static const struct statement settle_outcomes = {
	"settling outcomes by what the ledger holds",
	"UPDATE fermata.decision d SET"
	" outcome = (CASE WHEN d.decision_id = ANY (c.ledger_decisions) THEN 'counted' ELSE 'refused' "
	"END)::fermata.outcome,"
	" reason = CASE WHEN d.decision_id = ANY (c.ledger_decisions) THEN NULL"
	" ELSE 'already_decided: the resume that was published does not name it' END"
	" FROM fermata.checkpoint c WHERE c.checkpoint_id = ANY ($1::uuid[])"
	" AND d.checkpoint_id = ANY (ARRAY[c.checkpoint_id]) AND c.from_ledger AND d.outcome <> 'waiting'"
	" AND (d.outcome = 'counted') <> (d.decision_id = ANY (c.ledger_decisions))",
};

const struct statement ledger_outbox_delete = {
	"taking out of the outbox",
	"DELETE FROM fermata.outbox WHERE checkpoint_id = ANY ($1::uuid[])",
};

static const struct statement delete_expiry = {
	"clearing expiry of what is published",
	"DELETE FROM fermata.expiry WHERE checkpoint_id = ANY ($1::uuid[])",
};

static const struct statement delete_unclaimed = {
	"clearing unclaimed of what is published",
	"DELETE FROM fermata.unclaimed WHERE checkpoint_id = ANY ($1::uuid[])",
};

/* ---- in doubt ---- */

/* What it waited for is there only when its suspend is, too: an early decision decides nothing before. */
static const struct statement put_in_doubt = {
	"putting in doubt",
	"WITH doubted AS MATERIALIZED ("
	"SELECT c.checkpoint_id FROM fermata.outbox o"
	" JOIN fermata.checkpoint c ON c.checkpoint_id = ANY (ARRAY[o.checkpoint_id])"
	" WHERE o.topic = $1::text AND o.partition = $2::integer AND c.state = 'DECIDED'"
	" AND greatest(c.decided_at, c.appended_at) < $3::bigint AND coalesce(c.doubt_settled < $7::bigint, true)"
	" ORDER BY c.checkpoint_id LIMIT $6::integer FOR UPDATE OF c"
	"), changed AS ("
	"UPDATE fermata.checkpoint c SET state = 'IN_DOUBT', reason = $4::text,"
	" version = greatest(c.version + 1, $5::bigint), changed_at = $5::bigint FROM doubted d"
	" WHERE c.checkpoint_id = ANY (ARRAY[d.checkpoint_id])"
	" RETURNING c.checkpoint_id, " SQL_COMMON(
		"resumes_topic") " AS resumes_topic,"
						 " c.resumes_partition, c.version"
						 "), told AS ("
						 "INSERT INTO fermata.gate_outbox AS g (checkpoint_id, topic, partition, version)"
						 " SELECT checkpoint_id, resumes_topic, resumes_partition, version FROM changed"
						 " WHERE resumes_topic IS NOT NULL ORDER BY checkpoint_id"
						 " ON CONFLICT (checkpoint_id) DO UPDATE SET version = greatest(g.version, "
						 "excluded.version)"
						 ") SELECT count(*) FROM changed",
};

static const struct statement delete_doubted = {
	"taking out of the outbox what is in doubt",
	"DELETE FROM fermata.outbox o USING fermata.checkpoint c WHERE o.topic = $1::text"
	" AND o.partition = $2::integer AND c.checkpoint_id = ANY (ARRAY[o.checkpoint_id])"
	" AND c.state = 'IN_DOUBT'",
};

/* ---- what comes back ---- */

static enum fate ledger_rows(void *context, const PGresult *rows, struct error *error)
{
	struct ledger *ledger = context;
	struct row row = row_at(rows, 0, NULL);

	row_ledger(&row, ledger);
	return row_end(&row, error);
}

/* ---- parts ---- */

static void param_shard(struct params *params, const struct shard *shard)
{
	param_name(params, shard->cluster_id);
	param_name(params, shard->topic);
	param_int4(params, shard->partition);
}

void ledger_move_send(struct store *store, const struct shard *shard, int64_t mine, int64_t next,
                      int64_t *add_count)
{
	struct params *params = store_params(store);

	param_shard(params, shard);
	param_int8(params, next);
	param_int8(params, mine);
	store_send(store, &move_ledger, params, &(struct answer){ .add_count = add_count });
}

enum fate ledger_commit_moved(struct store *store, enum fate fate, int64_t moved, enum failpoint place,
                              struct error *error)
{
	if (fate == FATE_OK && moved != 1)
		return transaction_stale(store, error, "the ledger's position is not where this relay left it");
	if (fate == FATE_OK)
		fate = failpoint(place, error);
	if (fate == FATE_OK)
		fate = transaction_commit(store, error);
	if (fate != FATE_OK)
		store_rollback(store);
	return fate;
}

static enum fate commit_if_moved(struct store *store, const int64_t *moved, enum failpoint place,
                                 struct error *error)
{
	enum fate fate = transaction_flush(store, error);

	return ledger_commit_moved(store, fate, *moved, place, error);
}

enum fate store_ledger(struct store *store, const struct shard *shard, struct ledger *ret_ledger,
                       struct error *error)
{
	enum fate fate = transaction_begin(store, TRANSACTION_READ, error);

	*ret_ledger = (struct ledger){ .next = LEDGER_NONE, .doubt.before = TIME_NONE };
	if (fate != FATE_OK)
		return fate;
	struct params *params = store_params(store);
	param_shard(params, shard);
	store_send(store, &select_ledger, params, &(struct answer){ .rows = ledger_rows, .context = ret_ledger });
	return transaction_finish(store, error);
}

/* ---- R2 ---- */

static int compare_found(const void *a, const void *b)
{
	const struct ledger_found *const *left = a;
	const struct ledger_found *const *right = b;

	return uuid_compare(&(*left)->checkpoint_id, &(*right)->checkpoint_id);
}

/* Sorted, each checkpoint once: a statement may not touch a row twice. Returns how many are left. */
static size_t sort_found(const struct ledger_found *found, size_t len, const struct ledger_found **rows)
{
	size_t kept = 0;

	for (size_t i = 0; i < len; i++)
		rows[i] = &found[i];
	qsort(rows, len, sizeof(*rows), compare_found);
	for (size_t i = 0; i < len; i++)
		if (kept == 0 || compare_found(&rows[kept - 1], &rows[i]) != 0)
			rows[kept++] = rows[i];
	return kept;
}

static void param_found_ids(struct params *params, const struct ledger_found *const *rows, size_t len)
{
	param_array(params, PG_UUID, len);
	for (size_t i = 0; i < len; i++)
		item_uuid(params, &rows[i]->checkpoint_id);
}

static void param_found_decisions(struct params *params, const struct ledger_found *const *rows, size_t len)
{
	size_t total = 0;
	int32_t first = 1;

	for (size_t i = 0; i < len; i++)
		total += rows[i]->decisions_len;
	param_array(params, PG_UUID, total);
	for (size_t i = 0; i < len; i++)
		for (size_t j = 0; j < rows[i]->decisions_len; j++)
			item_uuid(params, &rows[i]->decisions[j]);
	param_array(params, PG_INT4, len);
	for (size_t i = 0; i < len; i++) {
		item_int4(params, first);
		first += (int32_t)rows[i]->decisions_len;
	}
	first = 1;
	param_array(params, PG_INT4, len);
	for (size_t i = 0; i < len; i++) {
		first += (int32_t)rows[i]->decisions_len;
		item_int4(params, first - 1);
	}
}

static void send_upsert(struct store *store, const struct shard *shard,
                        const struct ledger_found *const *rows, size_t len, int64_t *ret_new)
{
	struct params *params = store_params(store);

	param_found_ids(params, rows, len);
	param_array(params, PG_TEXT, len);
	for (size_t i = 0; i < len; i++)
		item_name(params, verdict_name(rows[i]->verdict));
	param_array(params, PG_INT8, len);
	for (size_t i = 0; i < len; i++)
		item_int8(params, rows[i]->appended_at);
	param_found_decisions(params, rows, len);
	param_array(params, PG_INT8, len);
	for (size_t i = 0; i < len; i++)
		item_int8(params, rows[i]->offset);
	param_shard(params, shard);
	store_send(store, &upsert_resumed, params, &(struct answer){ .rows = row_number, .context = ret_new });
}

static void send_found(struct store *store, const struct shard *shard, const struct ledger_found *const *rows,
                       size_t len, int64_t *ret_new)
{
	static const struct statement *const then[] = { &settle_outcomes, &ledger_outbox_delete, &delete_expiry,
		                                            &delete_unclaimed };

	if (len == 0)
		return;
	send_upsert(store, shard, rows, len, ret_new);
	for (size_t i = 0; i < sizeof(then) / sizeof(then[0]); i++) {
		struct params *params = store_params(store);
		param_found_ids(params, rows, len);
		store_send(store, then[i], params, NULL);
	}
}

static void send_advance(struct store *store, const struct shard *shard, int64_t mine, int64_t next,
                         struct doubt doubt, const uint8_t routes_digest[32], int64_t *add_count)
{
	struct params *params = store_params(store);
	bool made = mine == LEDGER_NONE;

	param_shard(params, shard);
	param_int8(params, next);
	param_time(params, doubt.before);
	if (doubt.before == TIME_NONE)
		param_null(params);
	else
		param_int8(params, doubt.below);
	param_bytes(params, (struct view){ routes_digest, 32 });
	if (!made)
		param_int8(params, mine);
	store_send(store, made ? &make_ledger : &advance_ledger, params,
	           &(struct answer){ .add_count = add_count });
}

enum fate store_ledger_advance(struct store *store, const struct shard *shard, int64_t mine, int64_t next,
                               struct doubt doubt, const uint8_t routes_digest[32],
                               const struct ledger_found *found, size_t len, size_t *ret_new,
                               struct error *error)
{
	int64_t moved = 0;
	int64_t made = 0;
	const struct ledger_found **rows = calloc(len + 1, sizeof(*rows));

	if (rows == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "PostgreSQL, reading the ledger: no memory");
	enum fate fate = transaction_begin(store, TRANSACTION_WRITE, error);
	if (fate == FATE_OK) {
		send_found(store, shard, rows, sort_found(found, len, rows), &made);
		send_advance(store, shard, mine, next, doubt, routes_digest, &moved);
		fate = commit_if_moved(store, &moved, FAILPOINT_RELAY_ADVANCE_OPEN, error);
	}
	free(rows);
	*ret_new = fate == FATE_OK ? (size_t)made : 0;
	return fate;
}

enum fate store_ledger_mark(struct store *store, const struct shard *shard, const struct ledger_found *found,
                            size_t len, size_t *ret_new, struct error *error)
{
	int64_t made = 0;
	const struct ledger_found **rows = calloc(len + 1, sizeof(*rows));

	*ret_new = 0;
	if (rows == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "PostgreSQL, reading the ledger: no memory");
	enum fate fate = transaction_begin(store, TRANSACTION_WRITE, error);
	if (fate == FATE_OK) {
		send_found(store, shard, rows, sort_found(found, len, rows), &made);
		fate = transaction_finish(store, error);
	}
	free(rows);
	if (fate == FATE_OK)
		*ret_new = (size_t)made;
	return fate;
}

/* ---- in doubt ---- */

static void send_doubt(struct store *store, const struct shard *shard, struct doubt doubt, const char *reason,
                       int64_t now, size_t limit, int64_t *ret_count)
{
	struct params *params = store_params(store);

	param_name(params, shard->topic);
	param_int4(params, shard->partition);
	param_int8(params, doubt.before);
	param_name(params, reason);
	param_int8(params, now);
	param_int4(params, (int32_t)(limit < INT32_MAX ? limit : INT32_MAX));
	param_int8(params, doubt.below);
	store_send(store, &put_in_doubt, params, &(struct answer){ .rows = row_number, .context = ret_count });
	params = store_params(store);
	param_name(params, shard->topic);
	param_int4(params, shard->partition);
	store_send(store, &delete_doubted, params, NULL);
}

enum fate store_ledger_doubt(struct store *store, const struct shard *shard, int64_t mine, struct doubt doubt,
                             const char *reason, int64_t now, size_t limit, size_t *ret_count,
                             struct error *error)
{
	int64_t moved = 0;
	int64_t count = 0;
	enum fate fate = transaction_begin(store, TRANSACTION_WRITE, error);

	*ret_count = 0;
	if (fate != FATE_OK)
		return fate;
	send_doubt(store, shard, doubt, reason, now, limit, &count);
	ledger_move_send(store, shard, mine, mine, &moved);
	fate = commit_if_moved(store, &moved, FAILPOINT_RELAY_ASIDE_OPEN, error);
	if (fate == FATE_OK)
		*ret_count = (size_t)count;
	return fate;
}
