#include "worker/deadletter.h"
#include "worker/handover.h"
#include "worker/intake.h"
#include "worker/letters_known.h"

#include "core/failpoint.h"
#include "core/log.h"
#include "core/metrics.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define REDO_MAX 50 /* how often a batch is done again at once because another worker made a row meanwhile */

/* Did a ceiling say no, and not the allocator? That is nobody's record's fault. */
static bool out_of_room(enum fate fate, const struct error *error, uint64_t refusals)
{
	return fate == FATE_RETRY && error->code == ERR_MEMORY && memory_refusals() == refusals;
}

/*
 * A batch's memory has an end, and what a record takes of it is not always in proportion to its bytes. Where
 * it is used up, what is there is written first; a record that does not fit even alone is a dead letter, for
 * it would hold up its partition for ever.
 */
static enum fate understand(struct intake *intake, struct item *item, struct error *error)
{
	const struct item unread = *item;
	uint64_t refusals = memory_refusals();
	enum fate fate = intake_understand(intake, item, error);
	if (out_of_room(fate, error, refusals) && intake->items_len > 0) {
		fate = intake_run_batch(intake, error);
		if (fate != FATE_OK)
			return fate;
		*item = unread;
		fate = intake_understand(intake, item, error);
	}
	if (!out_of_room(fate, error, refusals))
		return fate;
	*item = unread;
	item->dead = true;
	(void)error_set(&item->why, FATE_REJECT, ERR_TOO_LARGE, "it takes more memory than one record may have");
	return FATE_OK;
}

enum fate intake_add(struct intake *intake, struct part *part, struct record *record, struct error *error)
{
	assert(intake->items_len < intake->items_cap);
	struct item item = { .record = *record,
		                 .part = (size_t)(part - intake->parts),
		                 .suspend = part->suspends };
	enum fate fate = failpoint(FAILPOINT_INTAKE_FETCHED, error);
	if (fate == FATE_OK)
		fate = understand(intake, &item, error);
	if (fate == FATE_OK)
		fate = failpoint(FAILPOINT_INTAKE_UNDERSTOOD, error);
	if (fate == FATE_RETRY && error->code == ERR_UNKNOWN_SCHEMA)
		return intake_park(intake, part, record, error);
	if (fate != FATE_OK) {
		record_done(&item.record);
		return fate;
	}
	intake->items[intake->items_len++] = item;
	intake->bytes += record->key.len + record->value.len;
	part->received = record->at.offset + 1;
	intake->moved = true;
	return FATE_OK;
}

void intake_batch_done(struct batch *batch)
{
	for (size_t i = 0; i < batch->len; i++)
		record_done(&batch->items[i].record);
	batch->len = 0;
	if (batch->arena != NULL) /* NULL: intake could not even be opened */
		arena_reset(batch->arena);
}

void intake_drop_batch(struct intake *intake)
{
	struct batch batch = { .items = intake->items, .len = intake->items_len, .arena = intake->arena };
	intake_batch_done(&batch);
	intake->items_len = 0;
	intake->bytes = 0;
	intake->moved = false;
	if (intake->full)
		record_done(&intake->next);
	intake->full = false;
	atomic_store(&intake->worker->behind, false);
}

/* ---- one attempt at a run of items: everything in one transaction ---- */

struct attempt {
	struct intake *intake;
	struct item **items;
	size_t len;
	bool last;  /* the last items of the batch: the moves reach over ends of partitions too */
	bool again; /* another worker's row was met before */
	struct move *moves;
	size_t *moved_parts;
	size_t moves_len;
	struct judge_tally tally;
	struct batch_write write;
};

static void note_last(struct move *move, const struct item *item)
{
	const struct record *record = &item->record;
	move->has_last = true;
	move->last_offset = record->at.offset;
	move->last_timestamp = record->at.appended_at;
	vault_digest(record->value, move->last_digest);
}

static int by_partition(const void *a, const void *b)
{
	const struct move *x = a, *y = b;
	int order = strcmp(x->topic, y->topic);
	return order != 0 ? order : (x->partition > y->partition) - (x->partition < y->partition);
}

/* A move for each partition that items of this run (or an end of partition) carry forward. */
static enum fate plan_moves(struct attempt *attempt, struct arena *arena, struct error *error)
{
	struct intake *intake = attempt->intake;
	attempt->moves = arena_array(arena, intake->parts_len, sizeof(*attempt->moves));
	if (attempt->moves == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a batch");
	for (size_t p = 0; p < intake->parts_len; p++) {
		const struct part *part = &intake->parts[p];
		struct move move = {
			.topic = part->topic, .partition = part->partition, .lo = part->durable, .hi = -1
		};
		const struct item *last = NULL;
		for (size_t i = 0; i < attempt->len; i++)
			if (attempt->items[i]->part == p)
				last = attempt->items[i];
		if (last != NULL) {
			move.hi = last->record.at.offset + 1;
			note_last(&move, last);
		}
		if (attempt->last && part->handed >= 0)
			move.hi = part->handed;
		if (move.hi > part->durable)
			attempt->moves[attempt->moves_len++] = move;
	}
	qsort(attempt->moves, attempt->moves_len, sizeof(*attempt->moves), by_partition);
	return FATE_OK;
}

/* The commit is done: what was received is durable now. */
static void note_durable(struct attempt *attempt)
{
	struct intake *intake = attempt->intake;
	for (size_t i = 0; i < attempt->moves_len; i++) {
		const struct move *move = &attempt->moves[i];
		struct part *part = intake_part(intake, move->topic, move->partition);
		part->durable = move->hi;
		if (part->suspends && part->partition < intake->targets_len &&
		    move->hi > intake->seen[part->partition])
			intake->seen[part->partition] = move->hi;
	}
}

/* What no relay will ever see. */
static void note_quarantined(const struct attempt *attempt)
{
	if (attempt->tally.quarantined == 0)
		return;
	metrics_add(METRIC_QUARANTINED, attempt->tally.quarantined);
	for (size_t i = 0; i < attempt->write.checkpoints_len; i++) {
		const struct checkpoint *row = attempt->write.checkpoints[i].checkpoint;
		char id[UUID_TEXT_LEN + 1];
		if (row->state != GATE_QUARANTINED || checkpoint_has_shard(row))
			continue;
		uuid_format(&row->id, id);
		log_warn("intake", "checkpoint %s is QUARANTINED: %s", id, CHECKPOINT_NO_SHARD_REASON);
	}
}

static void note_tally(const struct attempt *attempt)
{
	const struct judge_tally *tally = &attempt->tally;
	metrics_add(METRIC_BATCHES, 1);
	metrics_add(METRIC_SUSPENDS, tally->suspends);
	metrics_add(METRIC_SUSPEND_DUPLICATES, tally->suspend_duplicates);
	metrics_add(METRIC_SUPERSEDED, tally->superseded);
	metrics_add(METRIC_DECISIONS_COUNTED, tally->counted);
	metrics_add(METRIC_DECISIONS_WAITING, tally->waiting);
	metrics_add(METRIC_DECISIONS_REFUSED, tally->refused);
	metrics_add(METRIC_DECISION_DUPLICATES, tally->decision_duplicates);
	note_quarantined(attempt);
	for (size_t i = 0; i < attempt->len; i++)
		if (attempt->items[i]->dead) {
			const struct item *item = attempt->items[i];
			letters_known_note(attempt->intake->options.letters, item);
			metrics_add(METRIC_DEAD_LETTERS, 1);
			log_warn("intake", "dead letter: %s [%d] offset %lld: %s: %s", item->record.at.topic,
			         (int)item->record.at.partition, (long long)item->record.at.offset,
			         error_code_name(item->why.code), item->why.message);
		}
}

/* After letters that were not acknowledged, their producer may still hold them: it goes. */
static enum fate send_letters(struct attempt *attempt, struct error *error)
{
	struct intake *intake = attempt->intake;
	const char *topic = config_text(intake->worker->config, PARAM_TOPICS_DEAD_LETTERS);
	if (intake->letters == NULL)
		return error_set(error, FATE_RETRY, ERR_SERVICE, "the producer of dead letters is not open");
	letters_known_mark(intake->options.letters, attempt->items, attempt->len);
	enum fate fate = failpoint(FAILPOINT_INTAKE_BEFORE_LETTERS, error);
	if (fate != FATE_OK)
		return fate;
	fate = deadletter_send(intake->letters, topic, attempt->items, attempt->len, intake->work, error);
	if (fate != FATE_OK) {
		producer_close(intake->letters);
		intake->letters = NULL;
	}
	return fate == FATE_OK ? failpoint(FAILPOINT_INTAKE_AFTER_LETTERS, error) : fate;
}

static bool any_dead(const struct attempt *attempt)
{
	for (size_t i = 0; i < attempt->len; i++)
		if (attempt->items[i]->dead)
			return true;
	return false;
}

/* The positions alone, before the batch: what protocol.md forbids. Only test builds can be told to. */
static enum fate move_ahead(struct attempt *attempt, const struct batch_request *request, struct error *error)
{
	struct batch_request moves_only = { .cluster_id = request->cluster_id,
		                                .moves = request->moves,
		                                .moves_len = request->moves_len };
	struct batch_loaded loaded;
	enum fate fate =
		store_batch_begin(attempt->intake->store, &moves_only, attempt->intake->work, &loaded, error);
	if (fate == FATE_OK)
		fate = store_commit(attempt->intake->store, error);
	return fate == FATE_OK ? failpoint(FAILPOINT_INTAKE_POSITION_AHEAD, error) : fate;
}

/* What goes into the outbox is told of with its resume or soon after it: where resumes leave at once, none of its being decided
 * is queued before that, for it would be told at the same time. */
static void leave_to_resumes(const struct worker *worker, const struct batch_write *write)
{
	if (!atomic_load(&worker->resumes_flow))
		return;
	for (size_t i = 0; i < write->checkpoints_len; i++)
		write->checkpoints[i].gate_event = write->checkpoints[i].gate_event && !write->checkpoints[i].outbox;
}

/* Between BEGIN and COMMIT: load, judge, write. */
static enum fate fill_transaction(struct attempt *attempt, struct batch_request *request, struct error *error)
{
	struct intake *intake = attempt->intake;
	struct batch_loaded loaded;
	if (sabotaged("position_ahead")) {
		enum fate ahead = move_ahead(attempt, request, error);
		if (ahead != FATE_OK)
			return ahead;
		request->moves_len = 0;
	}
	enum fate fate = store_batch_begin(intake->store, request, intake->work, &loaded, error);
	if (fate != FATE_OK)
		return fate;
	if (loaded.stale)
		return error_set(error, FATE_RETRY, ERR_STALE, "positions in the database are not this worker's");
	if (!intake_positions_hold(intake, loaded.positions, loaded.positions_len, attempt->moves,
	                           attempt->moves_len))
		return error_set(error, FATE_RETRY, ERR_STALE, "positions in the database have gone back");
	struct batch_write *write = &attempt->write;
	fate = failpoint(FAILPOINT_INTAKE_LOADED, error);
	if (fate == FATE_OK)
		fate = judge_batch(&intake->judge, attempt->items, attempt->len, request, &loaded, intake->work,
		                   write, &attempt->tally, error);
	if (fate != FATE_OK)
		return fate;
	write->singly = attempt->again;
	leave_to_resumes(intake->worker, write);
	write->notify = shards_elsewhere(intake->worker, write);
	fate = store_batch_write(intake->store, write, error);
	if (fate == FATE_RETRY && error->code == ERR_STALE)
		error->code = ERR_CONFLICT; /* not our positions: a row that another worker made just now */
	return fate == FATE_OK ? failpoint(FAILPOINT_INTAKE_WRITTEN, error) : fate;
}

static enum fate attempt_once(struct attempt *attempt, struct error *error)
{
	struct intake *intake = attempt->intake;
	arena_reset(intake->work);
	attempt->moves_len = 0;
	struct batch_request request = { .cluster_id = intake->worker->cluster_id };
	enum fate fate = plan_moves(attempt, intake->work, error);
	if (fate == FATE_OK)
		fate = judge_request(attempt->items, attempt->len, intake->work, &request, error);
	if (fate != FATE_OK)
		return fate;
	request.moves = attempt->moves;
	request.moves_len = attempt->moves_len;
	fate = failpoint(FAILPOINT_INTAKE_BATCHED, error);
	if (fate == FATE_OK)
		fate = fill_transaction(attempt, &request, error);
	if (fate == FATE_OK && any_dead(attempt)) {
		fate = intake_breaker_check(intake, attempt->items, attempt->len, error);
		if (fate == FATE_OK)
			fate = send_letters(attempt, error);
	}
	if (fate == FATE_OK)
		fate = failpoint(FAILPOINT_INTAKE_BEFORE_COMMIT, error);
	if (fate == FATE_OK)
		fate = store_commit(intake->store, error);
	if (fate != FATE_OK) {
		store_rollback(intake->store);
		return fate;
	}
	return failpoint(FAILPOINT_INTAKE_AFTER_COMMIT, error);
}

/* ---- runs of items: whole, again, in halves ---- */

static enum fate run_items(struct intake *intake, struct item **items, size_t len, bool last,
                           struct error *error);

/* One record that PostgreSQL refuses on its own, twice: it leaves as a dead letter. */
static enum fate run_poison(struct attempt *attempt, struct error *error)
{
	struct item *item = attempt->items[0];
	uint64_t refusals = memory_refusals();
	enum fate fate = attempt_once(attempt, error);
	if (fate != FATE_REJECT || (error->code == ERR_MEMORY && memory_refusals() != refusals))
		return fate;
	item->dead = true;
	item->judged_dead = false;
	(void)error_set_native(&item->why, FATE_REJECT, ERR_REJECTED_BY_STORE, error->native,
	                       "the database refuses it: %s", error->message);
	return attempt_once(attempt, error);
}

static enum fate run_halves(struct attempt *attempt, struct error *error)
{
	size_t half = attempt->len / 2;
	enum fate fate = run_items(attempt->intake, attempt->items, half, false, error);
	if (fate == FATE_OK)
		fate = run_items(attempt->intake, attempt->items + half, attempt->len - half, attempt->last, error);
	return fate;
}

static enum fate run_items(struct intake *intake, struct item **items, size_t len, bool last,
                           struct error *error)
{
	struct attempt attempt = { .intake = intake, .items = items, .len = len, .last = last };
	enum fate fate = FATE_OK;
	uint64_t refusals = memory_refusals();
	for (int redo = 0; redo < REDO_MAX; redo++) {
		fate = attempt_once(&attempt, error);
		if (fate != FATE_RETRY || error->code != ERR_CONFLICT)
			break;
		metrics_add(METRIC_BATCH_RETRIES, 1);
		attempt.again = true;
	}
	if (fate == FATE_REJECT && error->code == ERR_MEMORY && memory_refusals() != refusals)
		fate = error->fate = FATE_RETRY; /* the allocator's, and not a ceiling's no */
	if (fate == FATE_REJECT && len > 1)
		return run_halves(&attempt, error);
	if (fate == FATE_REJECT && len == 1)
		fate = run_poison(&attempt, error);
	if (fate == FATE_REJECT) /* not even the positions alone, or a letter's: that is no record's fault */
		fate = error->fate = FATE_RETRY;
	if (fate == FATE_OK) {
		note_durable(&attempt);
		intake_breaker_note(intake, items, len);
		note_tally(&attempt);
		if (attempt.tally.wakes_relay)
			handover_gates(intake, items, len, &attempt.write);
		fate = failpoint(FAILPOINT_INTAKE_BEFORE_WAKE, error);
		if (fate == FATE_OK && attempt.tally.wakes_relay)
			shards_wake(intake->worker, &attempt.write);
	}
	return fate;
}

/* ---- a batch ---- */

void intake_close_batch(struct intake *intake)
{
	for (size_t i = 0; i < intake->parts_len; i++)
		intake->parts[i].handed = intake->parts[i].received;
	intake->moved = false;
}

enum fate intake_store(struct intake *intake, const struct batch *batch, struct error *error)
{
	int64_t start = clock_real_us();
	for (size_t i = 0; i < batch->len; i++)
		batch->order[i] = &batch->items[i];
	enum fate fate = run_items(intake, batch->order, batch->len, true, error);
	if (fate == FATE_OK)
		metrics_observe_us(METRIC_COMMIT_SECONDS, clock_real_us() - start);
	return fate;
}

static void tell_kafka(struct intake *intake)
{
	size_t len = 0;
	for (size_t i = 0; i < intake->parts_len; i++) {
		struct part *part = &intake->parts[i];
		if (part->durable < 0 || part->durable == part->told)
			continue;
		part->told = part->durable;
		intake->reports[len++] = (struct partition_at){ part->topic, part->partition, part->durable };
	}
	if (len > 0)
		reader_report_positions(intake->reader, intake->reports, len);
}

void intake_stored(struct intake *intake)
{
	tell_kafka(intake);
	backoff_reset(&intake->backoff);
	worker_part_ok(intake->worker, PART_INTAKE_POSTGRES, true);
}

enum fate intake_run_batch(struct intake *intake, struct error *error)
{
	struct batch batch = { intake->items, intake->order, intake->items_len, intake->arena };
	enum fate fate = intake_settle(intake, error);
	if (fate != FATE_OK)
		return fate;
	intake_close_batch(intake);
	fate = intake_store(intake, &batch, error);
	if (fate != FATE_OK)
		return fate;
	intake_batch_done(&batch);
	intake->items_len = 0;
	intake->bytes = 0;
	intake_stored(intake);
	return FATE_OK;
}
