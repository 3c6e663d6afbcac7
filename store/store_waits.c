#include "store/store_waits.h"

#include "store/store_connection.h"
#include "store/store_lows.h"
#include "store/store_record.h"

void param_lows(struct params *params, const struct kafka_low *lows, size_t len)
{
	param_array(params, PG_TEXT, len);
	for (size_t i = 0; i < len; i++)
		item_name(params, lows[i].topic);
	param_array(params, PG_INT4, len);
	for (size_t i = 0; i < len; i++)
		item_int4(params, lows[i].partition);
	param_array(params, PG_INT8, len);
	for (size_t i = 0; i < len; i++)
		item_int8(params, lows[i].low);
}

#define LOOKED                                                                                               \
	"SELECT c.checkpoint_id, c.state, c.approvals, c.appended_at, c.common, c.own_suspend_topic,"            \
	" c.suspend_partition, c.suspend_offset FROM fermata.checkpoint c"

/* Which topic its record is on is a look at another table: it is had for what waits alone. */
#define WAITING                                                                                              \
	"SELECT c.*, " SQL_COMMON(                                                                               \
		"suspend_topic") " AS suspend_topic FROM looked c"                                                   \
						 " WHERE c.state IN ('PENDING', 'DECIDED', 'QUARANTINED', 'IN_DOUBT')"

/* first: a condition; then: what else is asked of `looked`, or nothing. */
#define WAITS_OF(looked, first, then)                                                                        \
	"WITH looked AS (" looked "), waiting AS MATERIALIZED (" WAITING "), early AS MATERIALIZED ("            \
	"SELECT d.topic, d.partition, d.\"offset\" FROM ("                                                       \
	"SELECT w.checkpoint_id FROM waiting w WHERE w.state = 'PENDING' AND w.approvals > 0"                    \
	" UNION ALL SELECT u.checkpoint_id FROM fermata.unclaimed u WHERE " first                                \
	") c JOIN fermata.decision d ON d.checkpoint_id = ANY (ARRAY[c.checkpoint_id])"                          \
	" WHERE d.outcome IN ('counted', 'waiting')"                                                             \
	") SELECT (SELECT count(*) FROM waiting), (SELECT min(w.appended_at) FROM waiting w),"                   \
	" (SELECT count(*) FROM waiting w WHERE EXISTS (SELECT FROM" LOWS("1", "2", "3") " WHERE " GONE(         \
		"w.suspend_topic", "w.suspend_partition",                                                            \
		"w.suspend_offset") ")),"                                                                            \
							" (SELECT count(*) FROM early), (SELECT count(*) FROM early d WHERE EXISTS "     \
							"(SELECT FROM" LOWS("1", "2", "3") " WHERE " GONE(                               \
								"d.topic", "d.partition",                                                    \
								"d.\"offset\"") ")),"                                                        \
												" (SELECT max(e.expires_at) FROM fermata.expiry e WHERE "    \
												"e.sent_at IS NULL)" then

static const struct statement waits_all = {
	"looking at all that waits",
	WAITS_OF(LOOKED, "true", ""),
};

/* A page, by an index that is there: no other one knows what waits among all that is settled. */
static const struct statement waits_page = {
	"looking at a page of what waits",
	WAITS_OF(
		LOOKED
		" WHERE c.appended_at > $4::bigint ORDER BY c.appended_at FETCH FIRST ($5::bigint) ROWS WITH TIES",
		"$4::bigint = '-9223372036854775808'",
		", (SELECT count(*) FROM looked), (SELECT max(l.appended_at) FROM looked l)"),
};

struct answers {
	struct store_waits *waits;
	struct store_waits_page *page; /* NULL: all was asked for */
};

static enum fate waits_rows(void *context, const PGresult *rows, struct error *error)
{
	struct answers *answers = context;
	struct store_waits *waits = answers->waits;
	struct store_waits_page *page = answers->page;
	struct row row = row_at(rows, 0, NULL);

	waits->waiting = row_int8(&row);
	waits->oldest = row_time(&row);
	waits->gone = row_int8(&row);
	waits->decisions = row_int8(&row);
	waits->decisions_gone = row_int8(&row);
	waits->latest_expiry = row_time(&row);
	if (page != NULL) {
		page->goes_on = row_int8(&row) >= (int64_t)page->most;
		page->after = row_time(&row);
	}
	return row_end(&row, error);
}

enum fate store_waits(struct store *store, const struct kafka_low *lows, size_t lows_len,
                      struct store_waits_page *page, struct store_waits *ret_waits, struct error *error)
{
	enum fate fate = transaction_begin(store, TRANSACTION_READ, error);

	struct answers answers = { ret_waits, page };

	*ret_waits = (struct store_waits){ .oldest = TIME_NONE, .latest_expiry = TIME_NONE };
	if (fate != FATE_OK)
		return fate;
	struct params *params = store_params(store);
	param_lows(params, lows, lows_len);
	if (page != NULL) {
		param_int8(params, page->after);
		param_int8(params, (int64_t)page->most);
	}
	store_send(store, page != NULL ? &waits_page : &waits_all, params,
	           &(struct answer){ .rows = waits_rows, .context = &answers });
	return transaction_finish(store, error);
}
