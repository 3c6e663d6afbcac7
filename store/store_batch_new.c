#include "store/store_batch_new.h"

#include "store/store_record.h"

#include <stdlib.h>

/* From so many new checkpoints on: a COPY waits for the server twice, which a lone record need not. */
#define COPY_MIN 8

bool write_to_expiry(const struct checkpoint_write *write)
{
	return write->expiry_set && write->checkpoint->expires_at != TIME_NONE;
}

bool write_to_gates(const struct checkpoint_write *write)
{
	return write->gate_event && write->checkpoint->filled;
}

static bool to_checkpoint(const struct checkpoint_write *write)
{
	return write->insert;
}

static bool to_payload(const struct checkpoint_write *write)
{
	return write->fill;
}

void param_write(struct params *params, const struct checkpoint_write *write)
{
	param_checkpoint_state(params, write->checkpoint);
	param_checkpoint_event(params, write->checkpoint, write->fill);
	param_bool(params, write->checkpoint->filled);
}

void param_payload(struct params *params, const struct checkpoint *checkpoint)
{
	param_uuid(params, &checkpoint->id);
	param_day(params, checkpoint->appended_at);
	param_bytes(params, checkpoint->sealed.body);
}

static void put_payload(struct params *params, const struct checkpoint_write *write)
{
	param_payload(params, write->checkpoint);
}

static void put_expiry(struct params *params, const struct checkpoint_write *write)
{
	param_uuid(params, &write->checkpoint->id);
	param_int8(params, write->checkpoint->expires_at);
}

static void put_gate(struct params *params, const struct checkpoint_write *write)
{
	param_uuid(params, &write->checkpoint->id);
	param_text(params, write->checkpoint->resumes_topic);
	param_int4(params, write->checkpoint->resumes_partition);
	param_int8(params, write->checkpoint->version);
}

/* What one table is given of new checkpoints. */
struct copy_list {
	struct statement statement;
	bool (*chosen)(const struct checkpoint_write *write);
	void (*put)(struct params *params, const struct checkpoint_write *write);
};

static const struct copy_list copy_lists[] = {
	{ { "copying checkpoints",
	    "COPY fermata.checkpoint (checkpoint_id, state, published, held, from_ledger, approvals, verdict,"
	    " decided_at, version, changed_at, reason, " CHECKPOINT_EVENT_COLUMNS ", filled)"
	    " FROM STDIN (FORMAT binary)" },
	  to_checkpoint,
	  param_write },
	{ { "copying payloads", "COPY fermata.payload (checkpoint_id, day, body) FROM STDIN (FORMAT binary)" },
	  to_payload,
	  put_payload },
	{ { "copying expiry", "COPY fermata.expiry (checkpoint_id, expires_at) FROM STDIN (FORMAT binary)" },
	  write_to_expiry,
	  put_expiry },
	{ { "copying gate events",
	    "COPY fermata.gate_outbox (checkpoint_id, topic, partition, version) FROM STDIN (FORMAT binary)" },
	  write_to_gates,
	  put_gate },
};

#define COPY_LISTS (sizeof(copy_lists) / sizeof(copy_lists[0]))

struct copying {
	const struct copy_list *list;
	const void **rows;
};

static void put_row(struct params *params, const void *context, size_t at)
{
	const struct copying *copying = context;

	copying->list->put(params, copying->rows[at]);
}

static size_t choose(const struct batch_write *batch, const struct copy_list *list, const void **rows)
{
	size_t len = 0;

	for (size_t i = 0; i < batch->checkpoints_len; i++)
		if (batch->checkpoints[i].insert && list->chosen(&batch->checkpoints[i]))
			rows[len++] = &batch->checkpoints[i];
	return len;
}

static bool are_many(const struct batch_write *batch)
{
	size_t len = 0;

	for (size_t i = 0; i < batch->checkpoints_len; i++)
		len += batch->checkpoints[i].insert;
	return len >= COPY_MIN;
}

/* rows: room for all writes, for each list. */
static enum fate copy_lists_of(struct store *store, const struct batch_write *batch, const void **rows,
                               struct error *error)
{
	struct copying copyings[COPY_LISTS];
	struct copy copies[COPY_LISTS];
	size_t len = 0;

	for (size_t i = 0; i < COPY_LISTS; i++) {
		size_t chosen = choose(batch, &copy_lists[i], rows);
		if (chosen == 0)
			continue;
		copyings[len] = (struct copying){ &copy_lists[i], rows };
		copies[len] = (struct copy){ &copy_lists[i].statement, chosen, put_row, &copyings[len] };
		len++;
		rows += chosen;
	}
	return store_copy(store, copies, len, error);
}

enum fate batch_copy_new(struct store *store, const struct batch_write *batch, bool *ret_copied,
                         struct error *error)
{
	*ret_copied = !batch->singly && are_many(batch);
	if (!*ret_copied)
		return FATE_OK;
	const void **rows = calloc(COPY_LISTS * batch->checkpoints_len, sizeof(*rows));
	if (rows == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "PostgreSQL, writing a batch: no memory");
	enum fate fate = copy_lists_of(store, batch, rows, error);
	free(rows);
	return fate;
}
