#include "store/store_positions.h"

/* ---- positions ---- */

static const struct statement select_positions = {
	"reading the positions",
	"SELECT " POSITION_COLUMNS " FROM fermata.kafka_offset k WHERE k.cluster_id = $1::text"
	" ORDER BY k.topic, k.partition",
};

static const struct statement set_waits = {
	"marking a partition as waiting",
	"UPDATE fermata.kafka_offset SET waits = $4::text"
	" WHERE cluster_id = $1::text AND topic = $2::text AND partition = $3::integer",
};

void positions_send(struct store *store, const char *cluster_id, struct position_list *list)
{
	struct params *params = store_params(store);

	param_name(params, cluster_id);
	store_send(store, &select_positions, params,
	           &(struct answer){ .rows = position_list_rows, .context = list });
}

enum fate store_positions(struct store *store, const char *cluster_id, struct arena *arena,
                          struct position **ret_positions, size_t *ret_len, struct error *error)
{
	struct position_list list = { .arena = arena };
	enum fate fate = transaction_begin(store, TRANSACTION_READ, error);

	if (fate != FATE_OK)
		return fate;
	positions_send(store, cluster_id, &list);
	fate = transaction_finish(store, error);
	*ret_positions = list.items;
	*ret_len = list.len;
	return fate;
}

enum fate store_position_waits(struct store *store, const char *cluster_id, const char *topic,
                               int32_t partition, enum position_waits waits, struct error *error)
{
	static const char *const names[] = {
		[WAITS_NO] = NULL, [WAITS_ALARM] = "alarm", [WAITS_REGISTRY] = "registry", [WAITS_BREAKER] = "breaker"
	};
	int64_t count = 0;
	enum fate fate = transaction_begin(store, TRANSACTION_WRITE, error);

	if (fate != FATE_OK)
		return fate;
	struct params *params = store_params(store);
	param_name(params, cluster_id);
	param_name(params, topic);
	param_int4(params, partition);
	param_name(params, names[waits]);
	store_send(store, &set_waits, params, &(struct answer){ .add_count = &count });
	fate = transaction_finish(store, error);
	if (fate == FATE_OK && count == 0)
		return error_set(error, FATE_RETRY, ERR_STALE, "PostgreSQL: %s/%d has no position yet", topic,
		                 (int)partition);
	return fate;
}
