#include "store/store_intake.h"

#include "store/store_audit.h"
#include "store/store_connection.h"
#include "store/store_record.h"

#include <inttypes.h>
#include <stdio.h>

#define PLACE_MAX 400

/* The row is locked: a batch that moves it is waited for. */
static const struct statement select_stopped = {
	"looking at a partition",
	"SELECT k.next, coalesce(k.waits = 'breaker', false) FROM fermata.kafka_offset k JOIN "
	"fermata.installation i"
	" USING (cluster_id) WHERE k.topic = $1::text AND k.partition = $2::integer FOR UPDATE OF k",
};

static const struct statement set_let_through = {
	"letting a partition's records through",
	"UPDATE fermata.kafka_offset k SET let_through = $3::bigint FROM fermata.installation i"
	" WHERE k.cluster_id = i.cluster_id AND k.topic = $1::text AND k.partition = $2::integer",
};

struct found {
	bool known;
	bool stopped;
	int64_t next;
};

static enum fate stopped_rows(void *context, const PGresult *rows, struct error *error)
{
	struct found *found = context;

	if (PQntuples(rows) == 0)
		return FATE_OK;
	struct row row = row_at(rows, 0, NULL);
	found->known = true;
	found->next = row_int8(&row);
	found->stopped = row_bool(&row);
	return row_end(&row, error);
}

static void send_let_through(struct store *store, const struct let_through *what,
                             const struct let_through_result *result, char place[PLACE_MAX])
{
	struct params *params = store_params(store);

	param_name(params, what->topic);
	param_int4(params, what->partition);
	param_int8(params, result->until);
	store_send(store, &set_let_through, params, NULL);
	snprintf(place, PLACE_MAX, "%s:%" PRId32 " from offset %" PRId64 " to below %" PRId64, what->topic,
	         what->partition, result->next, result->until);
	store_audit_add(store, &(struct audit_entry){ .at = what->now,
	                                              .who = what->who,
	                                              .what = view_of(AUDIT_LET_THROUGH),
	                                              .reason = what->reason,
	                                              .details = view_of(place) });
}

static enum fate look(struct store *store, const struct let_through *what,
                      struct let_through_result *ret_result, struct error *error)
{
	struct found found = { 0 };
	struct params *params = store_params(store);

	param_name(params, what->topic);
	param_int4(params, what->partition);
	store_send(store, &select_stopped, params, &(struct answer){ .rows = stopped_rows, .context = &found });
	enum fate fate = transaction_flush(store, error);
	*ret_result =
		(struct let_through_result){ .known = found.known, .next = found.next, .until = what->until };
	if (what->count > 0 && __builtin_add_overflow(found.next, what->count, &ret_result->until))
		ret_result->until = INT64_MAX;
	ret_result->done = fate == FATE_OK && found.stopped && ret_result->until > found.next;
	return fate;
}

enum fate store_let_through(struct store *store, const struct let_through *what,
                            struct let_through_result *ret_result, struct error *error)
{
	char place[PLACE_MAX];
	enum fate fate = transaction_begin(store, TRANSACTION_WRITE, error);

	*ret_result = (struct let_through_result){ 0 };
	if (fate == FATE_OK)
		fate = look(store, what, ret_result, error);
	if (fate == FATE_OK && ret_result->done) {
		send_let_through(store, what, ret_result, place);
		return transaction_finish(store, error);
	}
	store_rollback(store);
	return fate;
}
