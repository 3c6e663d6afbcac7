#include "store/store_batch_new.h"

#include "store/store_record.h"

#include <stdlib.h>

/* From so many rows on: a COPY waits for the server twice, which a lone record need not. */
#define COPY_MIN 8

/*
 * What is larger than a page of PostgreSQL lies in pieces of 1996 bytes, four to a page (TOAST_MAX_CHUNK_SIZE of blocks of
 * 8 KiB). A last piece that is small takes the room of a whole one where the page has no more for the next: so it stays in
 * the row, where it fits without being put out of it (TOAST_TUPLE_THRESHOLD, 2032 bytes with all the rest).
 */
#define TOAST_PIECE 1996
#define TAIL_MAX    1900

bool write_to_expiry(const struct checkpoint_write *write)
{
	return write->expiry_set && write->checkpoint->expires_at != TIME_NONE;
}

bool write_to_gates(const struct checkpoint_write *write)
{
	return write->gate_event && write->checkpoint->filled && checkpoint_has_shard(write->checkpoint);
}

bool write_to_outbox(const struct checkpoint_write *write)
{
	return write->outbox;
}

static bool is_new(const struct checkpoint_write *write)
{
	return write->insert;
}

static bool new_payload(const struct checkpoint_write *write)
{
	return write->insert && write->fill;
}

static bool new_expiry(const struct checkpoint_write *write)
{
	return write->insert && write_to_expiry(write);
}

static bool new_gate(const struct checkpoint_write *write)
{
	return write->insert && write_to_gates(write);
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
	struct view body = checkpoint->sealed.body;
	size_t end = body.len > TOAST_PIECE && body.len % TOAST_PIECE <= TAIL_MAX ? body.len % TOAST_PIECE : 0;
	param_bytes(params, (struct view){ body.data, body.len - end });
	param_bytes(params, end > 0 ? (struct view){ body.data + body.len - end, end } : VIEW_NULL);
}

void param_outbox(struct params *params, const struct checkpoint *checkpoint)
{
	param_uuid(params, &checkpoint->id);
	param_text(params, checkpoint->resumes_topic);
	param_int4(params, checkpoint->resumes_partition);
}

static void put_checkpoint(struct params *params, const void *row)
{
	param_write(params, row);
}

static void put_payload(struct params *params, const void *row)
{
	param_payload(params, ((const struct checkpoint_write *)row)->checkpoint);
}

static void put_decision(struct params *params, const void *row)
{
	param_decision(params, row);
}

static void put_outbox(struct params *params, const void *row)
{
	param_outbox(params, ((const struct checkpoint_write *)row)->checkpoint);
}

static void put_expiry(struct params *params, const void *row)
{
	const struct checkpoint *checkpoint = ((const struct checkpoint_write *)row)->checkpoint;

	param_uuid(params, &checkpoint->id);
	param_int8(params, checkpoint->expires_at);
}

static void put_gate(struct params *params, const void *row)
{
	const struct checkpoint *checkpoint = ((const struct checkpoint_write *)row)->checkpoint;

	param_outbox(params, checkpoint);
	param_int8(params, checkpoint->version);
}

/* What one table is given. */
struct copy_list {
	struct statement statement;
	bool (*counts)(
		const struct checkpoint_write *write); /* enough of these, and it is copied; NULL: of decisions */
	bool (*chosen)(const struct checkpoint_write *write); /* NULL: the decisions */
	void (*put)(struct params *params, const void *row);
};

/* In the one order of the tables. */
static const struct copy_list copy_lists[] = {
	{ { "copying checkpoints",
	    "COPY fermata.checkpoint (checkpoint_id, state, published, held, from_ledger, approvals, verdict,"
	    " decided_at, version, changed_at, reason, " CHECKPOINT_EVENT_COLUMNS ", filled)"
	    " FROM STDIN (FORMAT binary)" },
	  is_new,
	  is_new,
	  put_checkpoint },
	{ { "copying payloads",
	    "COPY fermata.payload (checkpoint_id, day, body, tail) FROM STDIN (FORMAT binary)" },
	  is_new,
	  new_payload,
	  put_payload },
	{ { "copying decisions", "COPY fermata.decision (" DECISION_NEW_COLUMNS ") FROM STDIN (FORMAT binary)" },
	  NULL,
	  NULL,
	  put_decision },
	{ { "copying into the outbox",
	    "COPY fermata.outbox (checkpoint_id, topic, partition) FROM STDIN (FORMAT binary)" },
	  write_to_outbox,
	  write_to_outbox,
	  put_outbox },
	{ { "copying expiry", "COPY fermata.expiry (checkpoint_id, expires_at) FROM STDIN (FORMAT binary)" },
	  is_new,
	  new_expiry,
	  put_expiry },
	{ { "copying gate events",
	    "COPY fermata.gate_outbox (checkpoint_id, topic, partition, version) FROM STDIN (FORMAT binary)" },
	  is_new,
	  new_gate,
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

static size_t choose_decisions(const struct batch_write *batch, const void **rows)
{
	for (size_t i = 0; i < batch->inserts_len; i++)
		rows[i] = batch->inserts[i];
	return batch->inserts_len;
}

static size_t choose(const struct batch_write *batch, const struct copy_list *list, const void **rows)
{
	size_t len = 0;

	if (list->chosen == NULL)
		return choose_decisions(batch, rows);
	for (size_t i = 0; i < batch->checkpoints_len; i++)
		if (list->chosen(&batch->checkpoints[i]))
			rows[len++] = &batch->checkpoints[i];
	return len;
}

static bool are_many(const struct batch_write *batch, bool (*counts)(const struct checkpoint_write *write))
{
	size_t len = counts == NULL ? batch->inserts_len : 0;

	for (size_t i = 0; counts != NULL && i < batch->checkpoints_len; i++)
		len += counts(&batch->checkpoints[i]);
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
		size_t chosen = are_many(batch, copy_lists[i].counts) ? choose(batch, &copy_lists[i], rows) : 0;
		if (chosen == 0)
			continue;
		copyings[len] = (struct copying){ &copy_lists[i], rows };
		copies[len] = (struct copy){ &copy_lists[i].statement, chosen, put_row, &copyings[len] };
		len++;
		rows += chosen;
	}
	return store_copy(store, copies, len, error);
}

enum fate batch_copy_new(struct store *store, const struct batch_write *batch,
                         struct batch_copied *ret_copied, struct error *error)
{
	*ret_copied = (struct batch_copied){ 0 };
	if (batch->singly)
		return FATE_OK;
	ret_copied->checkpoints = are_many(batch, is_new);
	ret_copied->decisions = are_many(batch, NULL);
	ret_copied->outbox = are_many(batch, write_to_outbox);
	if (!ret_copied->checkpoints && !ret_copied->decisions && !ret_copied->outbox)
		return FATE_OK;
	const void **rows = calloc(COPY_LISTS * batch->checkpoints_len + batch->inserts_len, sizeof(*rows));
	if (rows == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "PostgreSQL, writing a batch: no memory");
	enum fate fate = copy_lists_of(store, batch, rows, error);
	free(rows);
	return fate;
}
