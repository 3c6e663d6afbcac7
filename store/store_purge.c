/* Rows that go: a page of checkpoints, looked at, locked, and deleted with all that hangs on them. */
#include "store/store_retention.h"

#include "core/failpoint.h"
#include "store/store_connection.h"
#include "store/store_lows.h"
#include "store/store_record.h"

#define GATES_MAX 5000 /* gate events of open sessions wait behind as many tombstones at most */

/* ---- statements ---- */

static const struct statement count_gates = {
	"looking at the outbox of gate events",
	"SELECT count(*) FROM (SELECT FROM fermata.gate_outbox LIMIT $1::integer) g",
};

/* By the index of appended_at: see store_ask.c. */
static const struct statement select_page = {
	"looking for rows to purge",
	"SELECT c.appended_at, c.checkpoint_id,"
	" coalesce(fermata.settled_at(c.state, c.changed_at, c.decided_at) < $8::bigint, false)"
	" AND EXISTS (SELECT FROM" LOWS("1", "2", "3") " WHERE " GONE(
		SQL_COMMON("suspend_topic"), "c.suspend_partition",
		"c.suspend_offset") ")"
							" AND NOT EXISTS (SELECT FROM fermata.decision d WHERE d.checkpoint_id = ANY "
							"(ARRAY[c.checkpoint_id])"
							" AND NOT EXISTS (SELECT FROM" LOWS("1", "2", "3") " WHERE " GONE(
								"d.topic", "d.partition",
								"d.\"offset\"") "))"
												" FROM (SELECT * FROM fermata.checkpoint c"
												" WHERE (c.appended_at, uuid_send(c.checkpoint_id)) >= "
												"($4::bigint, uuid_send($5::uuid))"
												" AND c.appended_at <= $6::bigint ORDER BY c.appended_at "
												"FETCH FIRST ($7::integer) ROWS WITH TIES) c"
												" ORDER BY c.appended_at, uuid_send(c.checkpoint_id) LIMIT "
												"$7::integer",
};

/* One that intake or a relay holds is being looked at: another time. */
static const struct statement lock_rows = {
	"locking rows to purge",
	"SELECT c.checkpoint_id FROM fermata.checkpoint c WHERE c.checkpoint_id = ANY ($1::uuid[])"
	" ORDER BY c.checkpoint_id FOR UPDATE SKIP LOCKED",
};

/*
 * After the locks. A batch that met one of the rows before has committed its position, which is read here; one that
 * meets it later waits for us and then sees the horizon. The last record's time may be ahead of this clock, but not by
 * much. `until` goes on only together with `below`: that of a topic that was made anew stays where it was.
 */
static const struct statement raise_horizons = {
	"raising the horizons",
	"INSERT INTO fermata.horizon AS h (cluster_id, topic, partition, below, until)"
	" SELECT k.cluster_id, k.topic, k.partition, k.next, greatest($2::bigint,"
	" least(k.last_timestamp, $2::bigint + 3600000000)) FROM fermata.kafka_offset k WHERE k.cluster_id = "
	"$1::text"
	" UNION ALL"
	" SELECT o.cluster_id, o.topic, o.partition, o.next, $2::bigint + 60000000 FROM fermata.ledger_offset o"
	" WHERE o.cluster_id = $1::text"
	" ORDER BY 1, 2, 3"
	" ON CONFLICT (cluster_id, topic, partition) DO UPDATE SET below = excluded.below, until = excluded.until"
	" WHERE h.below < excluded.below",
};

#define BELOW(t, p, off)                                                                                     \
	"EXISTS (SELECT FROM fermata.horizon h WHERE h.cluster_id = $2::text AND h.topic = " t                   \
	" AND h.partition = " p " AND " off " < h.below)"

/* Whose records lie below the horizons: all, but where positions were set back and the records are not read again. */
static const struct statement purge_rows = {
	"purging rows",
	"WITH doomed AS MATERIALIZED ("
	"SELECT c.checkpoint_id, c.payload_day, " SQL_COMMON(
		"resumes_topic") " AS resumes_topic,"
						 " c.resumes_partition, c.version"
						 " FROM fermata.checkpoint c"
						 " WHERE c.checkpoint_id = ANY ($1::uuid[])"
						 " AND " BELOW(
							 SQL_COMMON("suspend_topic"), "c.suspend_partition",
							 "c.suspend_offset") " AND NOT EXISTS (SELECT FROM fermata.decision d WHERE "
												 "d.checkpoint_id = ANY "
												 "(ARRAY[c.checkpoint_id])"
												 " AND NOT " BELOW(
													 "d.topic", "d.partition",
													 "d.\"offset\"") ")"
																	 "), purged AS ("
																	 "DELETE FROM fermata.checkpoint c USING "
																	 "doomed x WHERE "
																	 "c.checkpoint_id = ANY "
																	 "(ARRAY[x.checkpoint_id])"
																	 "), unsealed AS ("
																	 "DELETE FROM fermata.payload p USING "
																	 "doomed x WHERE "
																	 "p.checkpoint_id = ANY "
																	 "(ARRAY[x.checkpoint_id])"
																	 " AND p.day = x.payload_day"
																	 "), undecided AS ("
																	 "DELETE FROM fermata.decision d USING "
																	 "doomed x WHERE "
																	 "d.checkpoint_id = ANY "
																	 "(ARRAY[x.checkpoint_id])"
																	 "), told AS ("
																	 "INSERT INTO fermata.gate_outbox AS g "
																	 "(checkpoint_id, topic, "
																	 "partition, version)"
																	 " SELECT x.checkpoint_id, "
																	 "x.resumes_topic, "
																	 "x.resumes_partition, x.version + 2 "
																	 "FROM doomed x"
																	 " WHERE x.resumes_topic IS NOT NULL"
																	 " ORDER BY x.checkpoint_id"
																	 " ON CONFLICT (checkpoint_id) DO UPDATE "
																	 "SET version = "
																	 "greatest(g.version, excluded.version)"
																	 ") SELECT count(*) FROM doomed",
};

/* By the index of those (0006_orphans.sql), which holds nothing else. One whose suspend came after all is that
 * checkpoint's, and goes with it. */
#define NO_CHECKPOINT                                                                                        \
	" NOT EXISTS (SELECT FROM fermata.checkpoint c WHERE c.checkpoint_id = ANY (ARRAY[d.checkpoint_id]))"

static const struct statement select_orphans = {
	"looking for decisions without a checkpoint",
	"SELECT d.appended_at, d.decision_id, d.appended_at < $6::bigint AND" NO_CHECKPOINT
	" AND EXISTS (SELECT FROM" LOWS("1", "2", "3") " WHERE " GONE(
		"d.topic", "d.partition",
		"d.\"offset\"") ") FROM fermata.decision d"
						" WHERE left(d.reason, 10) = 'no_suspend' AND d.decision_id >= $4::uuid"
						" ORDER BY d.decision_id LIMIT $5::integer",
};

static const struct statement purge_orphans = {
	"purging decisions without a checkpoint",
	"DELETE FROM fermata.decision d WHERE d.decision_id = ANY ($1::uuid[]) AND " BELOW(
		"d.topic", "d.partition", "d.\"offset\"") " AND" NO_CHECKPOINT,
};

/* ---- what comes back ---- */

struct candidates {
	struct arena *arena;
	size_t len;      /* rows of the page */
	int64_t last_at; /* of the last one */
	struct uuid last_id;
	struct uuid *ids; /* of those that may go; room for all */
	size_t ids_len;
};

static enum fate candidate_rows(void *context, const PGresult *rows, struct error *error)
{
	struct candidates *list = context;

	for (int i = 0; i < PQntuples(rows); i++) {
		struct row row = row_at(rows, i, NULL);
		list->last_at = row_int8(&row);
		list->last_id = row_uuid(&row);
		bool may_go = row_bool(&row);
		enum fate fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
		list->len++;
		if (may_go)
			list->ids[list->ids_len++] = list->last_id;
	}
	return FATE_OK;
}

static enum fate locked_rows(void *context, const PGresult *rows, struct error *error)
{
	struct candidates *list = context;

	for (int i = 0; i < PQntuples(rows); i++) {
		struct row row = row_at(rows, i, NULL);
		list->ids[list->ids_len++] = row_uuid(&row);
		enum fate fate = row_end(&row, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

/* ---- one page ---- */

static enum fate look_at_page(struct store *store, const struct purge_page *page, struct candidates *list,
                              bool *ret_busy, struct error *error)
{
	int64_t gates = 0;
	struct params *params = store_params(store);

	param_int4(params, GATES_MAX);
	store_send(store, &count_gates, params, &(struct answer){ .rows = row_number, .context = &gates });
	params = store_params(store);
	param_lows(params, page->lows, page->lows_len);
	param_int8(params, page->from_at);
	param_uuid(params, &page->from_id);
	param_int8(params, page->until_at);
	param_int4(params, (int32_t)page->rows);
	param_int8(params, page->settled_before);
	store_send(store, &select_page, params, &(struct answer){ .rows = candidate_rows, .context = list });
	enum fate fate = transaction_flush(store, error);
	*ret_busy = gates >= GATES_MAX;
	return fate;
}

static enum fate lock_page(struct store *store, struct candidates *list, struct error *error)
{
	struct params *params = store_params(store);

	param_uuids(params, list->ids, list->ids_len);
	list->ids_len = 0; /* the parameters have them: what comes back takes their place */
	store_send(store, &lock_rows, params, &(struct answer){ .rows = locked_rows, .context = list });
	return transaction_flush(store, error);
}

/* After the locks on what is to go, so that who waited for them sees the horizons. */
static enum fate move_horizons(struct store *store, const struct purge_page *page, struct error *error)
{
	struct params *params = store_params(store);

	param_name(params, page->cluster_id);
	param_int8(params, page->now);
	store_send(store, &raise_horizons, params, NULL);
	enum fate fate = transaction_flush(store, error);
	return fate == FATE_OK ? failpoint(FAILPOINT_RETENTION_HORIZONS_OPEN, error) : fate;
}

static enum fate purge_page(struct store *store, const struct purge_page *page, struct candidates *list,
                            int64_t *ret_purged, struct error *error)
{
	enum fate fate = lock_page(store, list, error);

	if (fate == FATE_OK && list->ids_len > 0)
		fate = failpoint(FAILPOINT_RETENTION_ROWS_LOCKED, error);
	if (fate != FATE_OK || list->ids_len == 0)
		return fate;
	fate = move_horizons(store, page, error);
	if (fate != FATE_OK)
		return fate;
	struct params *params = store_params(store);
	param_uuids(params, list->ids, list->ids_len);
	param_name(params, page->cluster_id);
	store_send(store, &purge_rows, params, &(struct answer){ .rows = row_number, .context = ret_purged });
	fate = transaction_flush(store, error);
	return fate == FATE_OK ? failpoint(FAILPOINT_RETENTION_ROWS_OPEN, error) : fate;
}

/* The id behind the last row's. False: there is none, or it was the last page. */
static bool id_next(const struct purge_page *page, const struct candidates *list,
                    struct purge_swept *ret_swept)
{
	if (list->len < page->rows)
		return false;
	ret_swept->next_id = list->last_id;
	for (size_t i = sizeof(ret_swept->next_id.bytes); i > 0; i--)
		if (++ret_swept->next_id.bytes[i - 1] != 0)
			return true;
	return false; /* it is all zeros again */
}

/* The place behind the last row, of rows in the order of appended_at and then of ids. */
static bool place_next(const struct purge_page *page, const struct candidates *list,
                       struct purge_swept *ret_swept)
{
	ret_swept->next_at = list->last_at;
	if (list->len < page->rows || id_next(page, list, ret_swept))
		return list->len == page->rows;
	if (list->last_at == INT64_MAX)
		return false;
	ret_swept->next_at++;
	return true;
}

static enum fate sweep_page(struct store *store, const struct purge_page *page, struct candidates *list,
                            struct purge_swept *ret_swept, struct error *error)
{
	int64_t purged = 0;
	enum fate fate = look_at_page(store, page, list, &ret_swept->busy, error);

	if (fate == FATE_OK && !ret_swept->busy && list->ids_len > 0)
		fate = purge_page(store, page, list, &purged, error);
	if (fate == FATE_OK)
		fate = transaction_commit(store, error);
	if (fate != FATE_OK || ret_swept->busy)
		return fate;
	ret_swept->looked = list->len;
	ret_swept->purged = (size_t)purged;
	ret_swept->end = !place_next(page, list, ret_swept);
	return FATE_OK;
}

/* ---- decisions without a checkpoint ---- */

/* No row is locked: nobody changes what is refused, and who judges a copy of one of these reads the decisions before
 * the horizons, so that it sees the one or the other. */
static enum fate purge_page_of_orphans(struct store *store, const struct purge_page *page,
                                       const struct candidates *list, int64_t *ret_purged,
                                       struct error *error)
{
	enum fate fate = move_horizons(store, page, error);

	if (fate != FATE_OK)
		return fate;
	struct params *params = store_params(store);
	param_uuids(params, list->ids, list->ids_len);
	param_name(params, page->cluster_id);
	store_send(store, &purge_orphans, params, &(struct answer){ .add_count = ret_purged });
	fate = transaction_flush(store, error);
	return fate == FATE_OK ? failpoint(FAILPOINT_RETENTION_ROWS_OPEN, error) : fate;
}

static enum fate sweep_page_of_orphans(struct store *store, const struct purge_page *page,
                                       struct candidates *list, struct purge_swept *ret_swept,
                                       struct error *error)
{
	int64_t purged = 0;
	struct params *params = store_params(store);

	param_lows(params, page->lows, page->lows_len);
	param_uuid(params, &page->from_id);
	param_int4(params, (int32_t)page->rows);
	param_int8(params, page->settled_before);
	store_send(store, &select_orphans, params, &(struct answer){ .rows = candidate_rows, .context = list });
	enum fate fate = transaction_flush(store, error);
	if (fate == FATE_OK && list->ids_len > 0)
		fate = purge_page_of_orphans(store, page, list, &purged, error);
	if (fate == FATE_OK)
		fate = transaction_commit(store, error);
	if (fate != FATE_OK)
		return fate;
	ret_swept->looked = list->len;
	ret_swept->purged = (size_t)purged;
	ret_swept->end = !id_next(page, list, ret_swept);
	return FATE_OK;
}

typedef enum fate sweep_some(struct store *store, const struct purge_page *page, struct candidates *list,
                             struct purge_swept *ret_swept, struct error *error);

static enum fate sweep_in_transaction(struct store *store, const struct purge_page *page, struct arena *arena,
                                      sweep_some *sweep, struct purge_swept *ret_swept, struct error *error)
{
	struct candidates list = { .arena = arena, .ids = arena_array(arena, page->rows, sizeof(*list.ids)) };

	*ret_swept = (struct purge_swept){ 0 };
	if (list.ids == NULL)
		return list_no_memory(error);
	enum fate fate = transaction_begin(store, TRANSACTION_WRITE, error);
	if (fate != FATE_OK)
		return fate;
	fate = sweep(store, page, &list, ret_swept, error);
	if (fate != FATE_OK)
		store_rollback(store);
	return fate;
}

enum fate store_rows_purge(struct store *store, const struct purge_page *page, struct arena *arena,
                           struct purge_swept *ret_swept, struct error *error)
{
	return sweep_in_transaction(store, page, arena, sweep_page, ret_swept, error);
}

enum fate store_orphans_purge(struct store *store, const struct purge_page *page, struct arena *arena,
                              struct purge_swept *ret_swept, struct error *error)
{
	return sweep_in_transaction(store, page, arena, sweep_page_of_orphans, ret_swept, error);
}
