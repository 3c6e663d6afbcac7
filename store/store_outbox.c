/* The outbox of a shard but for R3: how long it is, and what waits in it is told. */
#include "store/store_connection.h"
#include "store/store_row.h"

static const struct statement count_outbox = {
	"counting the outbox of a shard",
	"SELECT count(*) FROM fermata.outbox WHERE topic = $1::text AND partition = $2::integer",
};

/* In the order in which intake raises them. */
static const struct statement tell_decided = {
	"queueing gate events of what waits in the outbox",
	"INSERT INTO fermata.gate_outbox AS g (checkpoint_id, topic, partition, version)"
	" SELECT c.checkpoint_id, o.topic, o.partition, c.version FROM fermata.outbox o"
	" JOIN fermata.checkpoint c ON c.checkpoint_id = ANY (ARRAY[o.checkpoint_id])"
	" WHERE o.topic = $1::text AND o.partition = $2::integer AND c.state = 'DECIDED' ORDER BY c.checkpoint_id"
	" ON CONFLICT (checkpoint_id) DO UPDATE SET version = greatest(g.version, excluded.version)",
};

enum fate store_relay_tell(struct store *store, const struct shard *shard, struct error *error)
{
	enum fate fate = transaction_begin(store, TRANSACTION_WRITE, error);

	if (fate != FATE_OK)
		return fate;
	struct params *params = store_params(store);
	param_name(params, shard->topic);
	param_int4(params, shard->partition);
	store_send(store, &tell_decided, params, NULL);
	return transaction_finish(store, error);
}

enum fate store_outbox_count(struct store *store, const char *topic, int32_t partition, int64_t *ret_count,
                             struct error *error)
{
	enum fate fate = transaction_begin(store, TRANSACTION_READ, error);

	*ret_count = 0;
	if (fate != FATE_OK)
		return fate;
	struct params *params = store_params(store);
	param_name(params, topic);
	param_int4(params, partition);
	store_send(store, &count_outbox, params, &(struct answer){ .rows = row_number, .context = ret_count });
	return transaction_finish(store, error);
}
