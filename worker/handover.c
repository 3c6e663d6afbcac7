#include "worker/handover.h"

#include "worker/tray.h"

#include <stdlib.h>

static int by_id(const void *a, const void *b)
{
	const struct checkpoint_write *x = a, *y = b;
	return uuid_compare(&x->checkpoint->id, &y->checkpoint->id);
}

static const struct checkpoint_write *write_of(const struct batch_write *write, const struct item *item)
{
	struct checkpoint_write key = { .checkpoint = item->fresh };
	return bsearch(&key, write->checkpoints, write->checkpoints_len, sizeof(key), by_id);
}

/* Has its suspend made the row PENDING, and nothing else come to it? */
static bool is_first(const struct checkpoint_write *write)
{
	const struct checkpoint *row = write->checkpoint;
	const struct checkpoint unknown = { 0 };
	return write->fill && write->gate_event && row->state == GATE_PENDING &&
	       row->version == checkpoint_next_version(&unknown, row->appended_at);
}

static void hand_over(struct intake *intake, const struct item *item, const struct checkpoint *row,
                      struct buffer *value)
{
	struct gate_event event;
	struct error error;
	buffer_reset(value);
	checkpoint_gate_event(row, row->state, row->version, row->changed_at, &item->action, &event);
	if (codec_put_gate(intake->judging, &event, value, &error) != FATE_OK || buffer_failed(value))
		return; /* the relay meets the same, and says so */
	struct tray_event told = {
		.id = row->id,
		.version = row->version,
		.at = row->changed_at,
		.value = buffer_view(value),
		.traceparent = row->traceparent,
		.tracestate = row->tracestate,
	};
	shards_hand_over(intake->worker, row, &told);
}

void handover_gates(struct intake *intake, struct item *const *items, size_t len,
                    const struct batch_write *write)
{
	struct buffer value;
	if (intake->worker->shards == NULL)
		return;
	buffer_init(&value, 2 * (size_t)config_number(intake->worker->config, PARAM_LIMITS_RECORD_BYTES));
	for (size_t i = 0; i < len; i++) {
		const struct checkpoint_write *found =
			items[i]->suspend && !items[i]->dead ? write_of(write, items[i]) : NULL;
		if (found == NULL || !is_first(found))
			continue;
		const struct checkpoint *row = found->checkpoint;
		if ((write->notify & store_shard_bit(row->resumes_topic, row->resumes_partition)) == 0)
			hand_over(intake, items[i], row, &value); /* else no relay of ours has it */
	}
	buffer_done(&value);
}
