/*
 * The second half of a batch of intake: what was judged is written. What is new (checkpoints and what comes with them,
 * decisions, the outbox) goes by COPY where there is much of it, else it is a statement a row, pipelined; what changes
 * goes as arrays. The tables are written in one order everywhere (checkpoint, payload, decision, outbox,
 * expiry, unclaimed, gate_outbox) and each in the order of its ids, so that two writers wait for each other and do
 * not deadlock. (What is copied goes first: whoever would write rows of the same new checkpoint waits at its id in
 * `checkpoint`; and rows that were there before have been locked since the batch began.)
 */
#include "store/store_batch_new.h"
#include "store/store_columns.h"
#include "store/store_common.h"
#include "store/store_connection.h"
#include "store/store_record.h"

#include <stddef.h>
#include <stdlib.h>

/* ---- statements ---- */

/* Behind the 11 parameters of the state. */
#define EVENT_VALUES                                                                                         \
	"$12::text, $13::text, $14::text, $15::bigint, $16::text, $17::text, $18::text, $19::text,"              \
	" $20::fermata.risk, $21::integer, $22::text[], $23::text[], $24::bigint, $25::bigint, $26::bigint,"     \
	" $27::fermata.on_expiry, $28::bytea, $29::text, $30::text, $31::smallint, $32::smallint, $33::integer," \
	" $34::bytea, $35::bytea, $36::integer, $37::date, $38::integer, $39::text, $40::integer,"               \
	" $41::bigint, $42::bigint"

static const struct statement insert_checkpoint = {
	"inserting a checkpoint",
	"INSERT INTO fermata.checkpoint (checkpoint_id, state, published, held, from_ledger, approvals, verdict,"
	" decided_at, version, changed_at, reason, " CHECKPOINT_EVENT_COLUMNS ", filled)"
	" VALUES ($1::uuid, $2::fermata.gate_state, $3::boolean, $4::boolean, $5::boolean, $6::integer,"
	" $7::fermata.verdict, $8::bigint, $9::bigint, $10::bigint, $11::text, " EVENT_VALUES ", $43::boolean)"
	" ON CONFLICT (checkpoint_id) DO NOTHING",
};

static const struct statement fill_checkpoint = {
	"filling a checkpoint",
	"UPDATE fermata.checkpoint SET (state, published, held, from_ledger, approvals, verdict, decided_at,"
	" version, changed_at, reason, " CHECKPOINT_EVENT_COLUMNS ", filled) ="
	" ROW ($2::fermata.gate_state, $3::boolean, $4::boolean, $5::boolean, $6::integer, $7::fermata.verdict,"
	" $8::bigint, $9::bigint, $10::bigint, $11::text, " EVENT_VALUES ", $43::boolean)"
	" WHERE checkpoint_id = $1::uuid",
};

/* The key in the checkpoint's row is the one of the body that comes now, whatever was there before. */
static const struct statement insert_payload = {
	"inserting a payload",
	"INSERT INTO fermata.payload (checkpoint_id, day, body, tail)"
	" VALUES ($1::uuid, $2::date, $3::bytea, $4::bytea)"
	" ON CONFLICT (checkpoint_id, day) DO UPDATE SET body = excluded.body, tail = excluded.tail",
};

static const struct statement update_checkpoints = {
	"updating checkpoints",
	"UPDATE fermata.checkpoint c SET state = u.state::fermata.gate_state, published = u.published,"
	" held = u.held, from_ledger = u.from_ledger, approvals = u.approvals,"
	" verdict = u.verdict::fermata.verdict, decided_at = u.decided_at, version = u.version,"
	" changed_at = u.changed_at, reason = u.reason"
	" FROM unnest($1::uuid[], $2::text[], $3::boolean[], $4::boolean[], $5::boolean[], $6::integer[],"
	" $7::text[], $8::bigint[], $9::bigint[], $10::bigint[], $11::text[])"
	" u (id, state, published, held, from_ledger, approvals, verdict, decided_at, version, changed_at, "
	"reason)"
	" WHERE c.checkpoint_id = ANY (ARRAY[u.id])",
};

/* One after the other, so that seq grows in their order. */
static const struct statement insert_decision = {
	"inserting a decision",
	"INSERT INTO fermata.decision (" DECISION_NEW_COLUMNS ")"
	" VALUES ($1::uuid, $2::uuid, $3::fermata.outcome, $4::text, $5::fermata.decision_kind, $6::text, "
	"$7::text,"
	" $8::text, $9::bigint, $10::text, $11::text, $12::text, $13::text, $14::text, $15::bytea, $16::bytea,"
	" $17::text, $18::text, $19::integer, $20::bigint, $21::bigint, $22::smallint, $23::smallint, "
	"$24::integer,"
	" $25::text, $26::bytea, $27::bytea, $28::bytea) ON CONFLICT (decision_id) DO NOTHING",
};

static const struct statement update_decisions = {
	"updating decisions",
	"UPDATE fermata.decision d SET outcome = u.outcome::fermata.outcome, reason = u.reason"
	" FROM unnest($1::uuid[], $2::text[], $3::text[]) u (id, outcome, reason) WHERE d.decision_id = ANY "
	"(ARRAY[u.id])",
};

static const struct statement insert_outbox = {
	"putting into the outbox",
	"INSERT INTO fermata.outbox (checkpoint_id, topic, partition) VALUES ($1::uuid, $2::text, $3::integer)"
	" ON CONFLICT (checkpoint_id) DO NOTHING",
};

static const struct statement insert_expiry = {
	"setting expiry",
	"INSERT INTO fermata.expiry (checkpoint_id, expires_at)"
	" SELECT u.id, u.expires_at FROM unnest($1::uuid[], $2::bigint[]) u (id, expires_at) ORDER BY u.id"
	" ON CONFLICT (checkpoint_id) DO UPDATE SET expires_at = excluded.expires_at, sent_at = NULL",
};

static const struct statement delete_expiry = {
	"clearing expiry",
	"DELETE FROM fermata.expiry WHERE checkpoint_id = ANY ($1::uuid[])",
};

static const struct statement insert_unclaimed = {
	"setting unclaimed",
	"INSERT INTO fermata.unclaimed AS w (checkpoint_id, since, decisions)"
	" SELECT u.id, u.since, u.decisions FROM unnest($1::uuid[], $2::bigint[], $3::integer[])"
	" u (id, since, decisions) ORDER BY u.id"
	" ON CONFLICT (checkpoint_id) DO UPDATE SET decisions = w.decisions + excluded.decisions",
};

static const struct statement delete_unclaimed = {
	"clearing unclaimed",
	"DELETE FROM fermata.unclaimed WHERE checkpoint_id = ANY ($1::uuid[])",
};

static const struct statement insert_gates = {
	"queueing gate events",
	"INSERT INTO fermata.gate_outbox AS g (checkpoint_id, topic, partition, version)"
	" SELECT u.id, u.topic, u.partition, u.version"
	" FROM unnest($1::uuid[], $2::text[], $3::integer[], $4::bigint[]) u (id, topic, partition, version)"
	" ORDER BY u.id ON CONFLICT (checkpoint_id) DO UPDATE SET version = greatest(g.version, "
	"excluded.version)",
};

/* ---- columns ---- */

static void put_state(struct params *params, const void *field)
{
	item_name(params, gate_state_name(*(const enum gate_state *)field));
}

static void put_verdict(struct params *params, const void *row)
{
	const struct checkpoint *checkpoint = row;

	item_name(params, checkpoint->has_verdict ? verdict_name(checkpoint->verdict) : NULL);
}

static const struct column update_columns[] = {
	{ PG_UUID, column_put_uuid, offsetof(struct checkpoint, id) },
	{ PG_TEXT, put_state, offsetof(struct checkpoint, state) },
	{ PG_BOOL, column_put_bool, offsetof(struct checkpoint, published) },
	{ PG_BOOL, column_put_bool, offsetof(struct checkpoint, held) },
	{ PG_BOOL, column_put_bool, offsetof(struct checkpoint, from_ledger) },
	{ PG_INT4, column_put_int4, offsetof(struct checkpoint, approvals) },
	{ PG_TEXT, put_verdict, 0 },
	{ PG_INT8, column_put_time, offsetof(struct checkpoint, decided_at) },
	{ PG_INT8, column_put_int8, offsetof(struct checkpoint, version) },
	{ PG_INT8, column_put_int8, offsetof(struct checkpoint, changed_at) },
	{ PG_TEXT, column_put_view, offsetof(struct checkpoint, reason) },
};

static const struct column gate_columns[] = {
	{ PG_UUID, column_put_uuid, offsetof(struct checkpoint, id) },
	{ PG_TEXT, column_put_view, offsetof(struct checkpoint, resumes_topic) },
	{ PG_INT4, column_put_int4, offsetof(struct checkpoint, resumes_partition) },
	{ PG_INT8, column_put_int8, offsetof(struct checkpoint, version) },
};

static const struct column expiry_columns[] = {
	{ PG_UUID, column_put_uuid, offsetof(struct checkpoint, id) },
	{ PG_INT8, column_put_int8, offsetof(struct checkpoint, expires_at) },
};

static const struct column id_columns[] = {
	{ PG_UUID, column_put_uuid, offsetof(struct checkpoint, id) },
};

static void put_write_id(struct params *params, const void *row)
{
	item_uuid(params, &((const struct checkpoint_write *)row)->checkpoint->id);
}

static void put_write_changed_at(struct params *params, const void *row)
{
	item_int8(params, ((const struct checkpoint_write *)row)->checkpoint->changed_at);
}

static const struct column unclaimed_columns[] = {
	{ PG_UUID, put_write_id, 0 },
	{ PG_INT8, put_write_changed_at, 0 },
	{ PG_INT4, column_put_int4, offsetof(struct checkpoint_write, unclaimed_add) },
};

static void put_outcome(struct params *params, const void *field)
{
	item_name(params, outcome_name(*(const enum outcome *)field));
}

static const struct column outcome_columns[] = {
	{ PG_UUID, column_put_uuid, offsetof(struct decision, id) },
	{ PG_TEXT, put_outcome, offsetof(struct decision, outcome) },
	{ PG_TEXT, column_put_view, offsetof(struct decision, outcome_reason) },
};

/* ---- which of the rows go where ---- */

static bool is_update(const struct checkpoint_write *write)
{
	return !write->insert && !write->fill;
}

static bool from_expiry(const struct checkpoint_write *write)
{
	return write->expiry_clear;
}

static bool to_unclaimed(const struct checkpoint_write *write)
{
	return write->unclaimed_add > 0;
}

static bool from_unclaimed(const struct checkpoint_write *write)
{
	return write->unclaimed_clear;
}

/* What one statement is given: the chosen ones, in the order of their ids. */
struct list_write {
	const struct statement *statement;
	bool (*chosen)(const struct checkpoint_write *write);
	const struct column *columns;
	size_t columns_len;
	bool of_write; /* the rows are struct checkpoint_write, else struct checkpoint */
	bool copies;   /* those of new checkpoints are copied, where these are (store_batch_new.h) */
};

static const struct list_write checkpoint_updates = {
	&update_checkpoints, is_update, update_columns, COLUMNS_LEN(update_columns), false, false,
};

/* Behind the outbox, in the one order of the tables. */
static const struct list_write work_lists[] = {
	{ &insert_expiry, write_to_expiry, expiry_columns, COLUMNS_LEN(expiry_columns), false, true },
	{ &delete_expiry, from_expiry, id_columns, COLUMNS_LEN(id_columns), false, false },
	{ &insert_unclaimed, to_unclaimed, unclaimed_columns, COLUMNS_LEN(unclaimed_columns), true, false },
	{ &delete_unclaimed, from_unclaimed, id_columns, COLUMNS_LEN(id_columns), false, false },
	{ &insert_gates, write_to_gates, gate_columns, COLUMNS_LEN(gate_columns), false, true },
};

/* ---- sending ---- */

/* How many rows the statements should touch, and how many they did. */
struct tally {
	int64_t expected;
	int64_t inserted; /* into checkpoint or decision: fewer than expected means that another was first */
	int64_t updates_expected;
	int64_t updated;
};

static void send_columns(struct store *store, const struct statement *statement, const struct column *columns,
                         size_t columns_len, const void *const *rows, size_t rows_len, int64_t *add_count)
{
	if (rows_len == 0)
		return;
	struct params *params = store_params(store);
	params_columns(params, columns, columns_len, rows, rows_len);
	store_send(store, statement, params, &(struct answer){ .add_count = add_count });
}

/* rows has room for all. Returns how many were chosen. */
static size_t send_list(struct store *store, const struct list_write *list, const struct batch_write *batch,
                        bool copied, const void **rows, int64_t *add_count)
{
	size_t len = 0;

	for (size_t i = 0; i < batch->checkpoints_len; i++) {
		const struct checkpoint_write *write = &batch->checkpoints[i];
		if (list->chosen(write) && !(copied && list->copies && write->insert))
			rows[len++] = list->of_write ? (const void *)write : (const void *)write->checkpoint;
	}
	send_columns(store, list->statement, list->columns, list->columns_len, rows, len, add_count);
	return len;
}

static void send_event(struct store *store, const struct checkpoint_write *write, struct tally *tally)
{
	struct params *params = store_params(store);

	param_write(params, write);
	if (write->insert) {
		tally->expected++;
		store_send(store, &insert_checkpoint, params, &(struct answer){ .add_count = &tally->inserted });
	} else {
		tally->updates_expected++;
		store_send(store, &fill_checkpoint, params, &(struct answer){ .add_count = &tally->updated });
	}
}

static void send_payload(struct store *store, const struct checkpoint *checkpoint)
{
	struct params *params = store_params(store);

	param_payload(params, checkpoint);
	store_send(store, &insert_payload, params, NULL);
}

/* `copied`: the new ones are there already, with their payloads. */
static void send_checkpoints(struct store *store, const struct batch_write *batch, bool copied,
                             const void **rows, struct tally *tally)
{
	common_send(store, batch, rows);
	for (size_t i = 0; i < batch->checkpoints_len; i++) {
		const struct checkpoint_write *write = &batch->checkpoints[i];
		if (write->insert ? !copied : write->fill)
			send_event(store, write, tally);
	}
	size_t updates = send_list(store, &checkpoint_updates, batch, copied, rows, &tally->updated);
	tally->updates_expected += (int64_t)updates;
	for (size_t i = 0; i < batch->checkpoints_len; i++) {
		const struct checkpoint_write *write = &batch->checkpoints[i];
		if (write->fill && !(copied && write->insert))
			send_payload(store, write->checkpoint);
	}
}

/* ---- the whole ---- */

static void send_decisions(struct store *store, const struct batch_write *batch,
                           const struct batch_copied *copied, const void **rows, struct tally *tally)
{
	for (size_t i = 0; i < batch->inserts_len && !copied->decisions; i++) {
		struct params *params = store_params(store);
		param_decision(params, batch->inserts[i]);
		tally->expected++;
		store_send(store, &insert_decision, params, &(struct answer){ .add_count = &tally->inserted });
	}
	for (size_t i = 0; i < batch->updates_len; i++)
		rows[i] = batch->updates[i];
	tally->updates_expected += (int64_t)batch->updates_len;
	send_columns(store, &update_decisions, outcome_columns, COLUMNS_LEN(outcome_columns), rows,
	             batch->updates_len, &tally->updated);
}

static void send_outbox(struct store *store, const struct batch_write *batch)
{
	for (size_t i = 0; i < batch->checkpoints_len; i++) {
		if (!write_to_outbox(&batch->checkpoints[i]))
			continue;
		struct params *params = store_params(store);
		param_outbox(params, batch->checkpoints[i].checkpoint);
		store_send(store, &insert_outbox, params, NULL);
	}
}

static void send_all(struct store *store, const struct batch_write *batch, const struct batch_copied *copied,
                     const void **rows, struct tally *tally)
{
	send_checkpoints(store, batch, copied->checkpoints, rows, tally);
	send_decisions(store, batch, copied, rows, tally);
	if (!copied->outbox)
		send_outbox(store, batch);
	for (size_t i = 0; i < sizeof(work_lists) / sizeof(work_lists[0]); i++)
		send_list(store, &work_lists[i], batch, copied->checkpoints, rows, NULL);
	transaction_notify(store, batch->notify);
}

static enum fate check_tally(const struct tally *tally, struct error *error)
{
	if (tally->inserted != tally->expected)
		return error_set(
			error, FATE_RETRY, ERR_STALE,
			"PostgreSQL, writing a batch: a row that was to be made is there already: another worker "
			"was first");
	if (tally->updated != tally->updates_expected)
		return error_set(error, FATE_RETRY, ERR_STALE,
		                 "PostgreSQL, writing a batch: a row that was to be changed is gone");
	return FATE_OK;
}

enum fate store_batch_write(struct store *store, const struct batch_write *write, struct error *error)
{
	struct tally tally = { 0 };
	size_t most = write->checkpoints_len;
	enum fate fate = transaction_open(store, error);

	if (fate != FATE_OK)
		return fate;
	most = write->updates_len > most ? write->updates_len : most;
	const void **rows = calloc(most + 1, sizeof(*rows));
	if (rows == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "PostgreSQL, writing a batch: no memory");
	struct batch_copied copied;
	fate = batch_copy_new(store, write, &copied, error);
	if (fate == FATE_OK)
		send_all(store, write, &copied, rows, &tally);
	free(rows);
	if (fate != FATE_OK)
		return fate;
	if (!pipeline_is_idle(store_pipeline(store))) /* idle: all of it was copied, and is answered */
		fate = transaction_flush(store, error);
	return fate == FATE_OK ? check_tally(&tally, error) : fate;
}
