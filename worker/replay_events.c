#include "worker/learn.h"
#include "worker/replay_inner.h"

#include <stdio.h>
#include <string.h>

#define REDO_MAX 50 /* how often a batch is done again because a worker made a row meanwhile */

/* What a record is to the database, as it stood before the batch was judged. */
enum standing {
	STANDING_DEAD, /* it cannot be understood */
	STANDING_SAME,
	STANDING_PURGED, /* it was settled, and its row purged */
	STANDING_DIFFERS,
	STANDING_MISSING,
	STANDING_UNFILLED,
	STANDING_NO_CHECKPOINT,
	STANDING_OUTCOME,
};

struct attempt {
	struct replay *replay;
	struct item **items;
	size_t len;
	struct batch_request request;
	struct batch_loaded loaded;
	struct batch_write write;
	enum standing *standings;
};

/* ---- what is there ---- */

static struct checkpoint *find_row(const struct batch_loaded *loaded, const struct uuid *id)
{
	for (size_t i = 0; i < loaded->checkpoints_len; i++)
		if (uuid_compare(&loaded->checkpoints[i]->id, id) == 0)
			return loaded->checkpoints[i];
	return NULL;
}

static struct decision *find_decision(const struct batch_loaded *loaded, const struct uuid *id)
{
	for (size_t i = 0; i < loaded->decisions_len; i++)
		if (uuid_compare(&loaded->decisions[i]->id, id) == 0)
			return loaded->decisions[i];
	return NULL;
}

static enum standing stand_suspend(const struct attempt *attempt, const struct item *item)
{
	const struct checkpoint *row = find_row(&attempt->loaded, &item->fresh->id);
	if (row == NULL)
		return STANDING_MISSING;
	if (!row->filled)
		return STANDING_UNFILLED;
	return memcmp(row->digest, item->fresh->digest, DIGEST_LEN) == 0 ? STANDING_SAME : STANDING_DIFFERS;
}

static enum standing stand_decision(const struct attempt *attempt, const struct item *item, char *text,
                                    size_t cap)
{
	const struct batch_loaded *loaded = &attempt->loaded;
	const struct intake *desk = &attempt->replay->desk;
	const struct decision *known = find_decision(loaded, &item->decision->id);
	const struct checkpoint *row = find_row(loaded, &item->decision->checkpoint_id);
	if (known == NULL)
		return row != NULL                                 ? STANDING_MISSING
		       : judge_is_purged(loaded, &item->record.at) ? STANDING_PURGED
		                                                   : STANDING_NO_CHECKPOINT;
	if (memcmp(known->record_digest, item->decision->record_digest, DIGEST_LEN) != 0)
		return STANDING_DIFFERS;
	if (row != NULL && replay_outcome(&desk->judge.policy, row, known, loaded->decisions,
	                                  loaded->decisions_len, desk->work, text, cap))
		return STANDING_OUTCOME;
	return STANDING_SAME;
}

/* ---- telling ---- */

static void tell(struct replay *replay, enum replay_what what, const struct item *item, const char *text)
{
	const struct uuid *checkpoint = item->fresh != NULL ? &item->fresh->id : NULL, *decision = NULL;
	if (item->decision != NULL) {
		checkpoint = &item->decision->checkpoint_id;
		decision = &item->decision->id;
	}
	replay_tell(replay, what, &item->record.at, checkpoint, decision, text);
}

static void tell_dead(struct replay *replay, const struct item *item)
{
	char text[sizeof(item->why.message) + 64];
	snprintf(text, sizeof(text), "it cannot be taken in: %s: %s", error_code_name(item->why.code),
	         item->why.message);
	tell(replay, REPLAY_UNREADABLE, item, text);
}

static bool is_filled_by(const struct batch_write *write, const struct uuid *id)
{
	for (size_t i = 0; i < write->checkpoints_len; i++)
		if (write->checkpoints[i].fill && uuid_compare(&write->checkpoints[i].checkpoint->id, id) == 0)
			return true;
	return false;
}

static bool is_inserted_by(const struct batch_write *write, const struct uuid *id)
{
	for (size_t i = 0; i < write->inserts_len; i++)
		if (uuid_compare(&write->inserts[i]->id, id) == 0)
			return true;
	return false;
}

/* What would be written, once: the judge has the last word on whether it is missing. */
static enum fate tell_missing(struct attempt *attempt, const struct item *item, enum replay_what what,
                              struct error *error)
{
	struct replay *replay = attempt->replay;
	const struct uuid *id = item->suspend ? &item->fresh->id : &item->decision->id;
	const struct uuid *checkpoint = item->suspend ? id : &item->decision->checkpoint_id;
	bool written = item->suspend ? is_filled_by(&attempt->write, id) : is_inserted_by(&attempt->write, id);
	if (item->judged_dead) {
		tell_dead(replay, item);
		return FATE_OK;
	}
	if (!written) {
		replay->report->purged++;
		return FATE_OK;
	}
	tell(replay, what, item,
	     what == REPLAY_UNFILLED ? "only its decisions or its resume were known"
	     : item->suspend         ? "its checkpoint is not in the database"
	                             : "it is not in the database");
	return ids_add(&replay->wanted, checkpoint, NULL, error);
}

static enum fate tell_standing(struct attempt *attempt, size_t i, const char *text, struct error *error)
{
	struct replay *replay = attempt->replay;
	const struct item *item = attempt->items[i];
	switch (attempt->standings[i]) {
	case STANDING_DEAD:
		tell_dead(replay, item);
		break;
	case STANDING_SAME:
		replay->report->same++;
		break;
	case STANDING_PURGED:
		replay->report->purged++;
		break;
	case STANDING_DIFFERS:
		tell(replay, REPLAY_DIFFERS, item, "the database has another record under this id, which stays");
		break;
	case STANDING_MISSING:
		return tell_missing(attempt, item, REPLAY_MISSING, error);
	case STANDING_UNFILLED:
		return tell_missing(attempt, item, REPLAY_UNFILLED, error);
	case STANDING_NO_CHECKPOINT:
		tell(replay, REPLAY_NO_CHECKPOINT, item,
		     "it is not in the database, and its checkpoint is not either: replay the suspends first");
		break;
	case STANDING_OUTCOME:
		tell(replay, REPLAY_OUTCOME, item, text);
		break;
	}
	return FATE_OK;
}

/* ---- one attempt ---- */

#define TEXT_CAP 160

/* The standing of each, before the judge changes the rows; a record that is there twice is told of once. */
static enum fate take_stock(struct attempt *attempt, char (**ret_texts)[TEXT_CAP], struct error *error)
{
	struct replay *replay = attempt->replay;
	struct arena *arena = replay->desk.work;
	char(*texts)[TEXT_CAP] = arena_array(arena, attempt->len, sizeof(*texts));
	attempt->standings = arena_array(arena, attempt->len, sizeof(*attempt->standings));
	if (texts == NULL || attempt->standings == NULL)
		return error_set(error, FATE_REJECT, ERR_MEMORY, "no memory for a batch");
	for (size_t i = 0; i < attempt->len; i++) {
		struct item *item = attempt->items[i];
		attempt->standings[i] = item->dead      ? STANDING_DEAD
		                        : item->suspend ? stand_suspend(attempt, item)
		                                        : stand_decision(attempt, item, texts[i], TEXT_CAP);
		if (attempt->standings[i] == STANDING_NO_CHECKPOINT)
			item->dead = true; /* not for the judge: it would keep it as an early one */
	}
	*ret_texts = texts;
	return FATE_OK;
}

/* What counted for a checkpoint whose row is not there (any more) is judged again with it. */
static void judge_again(struct attempt *attempt)
{
	for (size_t i = 0; i < attempt->loaded.decisions_len; i++) {
		struct decision *decision = attempt->loaded.decisions[i];
		const struct checkpoint *row = find_row(&attempt->loaded, &decision->checkpoint_id);
		if (decision->outcome == OUTCOME_COUNTED && (row == NULL || !row->filled))
			decision->outcome = OUTCOME_WAITING;
	}
}

static enum fate tell_all(struct attempt *attempt, char (*texts)[TEXT_CAP], struct error *error)
{
	struct replay *replay = attempt->replay;
	for (size_t i = 0; i < attempt->len; i++) {
		const struct item *item = attempt->items[i];
		bool fresh = true;
		enum fate fate = FATE_OK;
		replay->report->records++;
		if (attempt->standings[i] == STANDING_MISSING || attempt->standings[i] == STANDING_UNFILLED)
			fate =
				ids_add(&replay->told, item->suspend ? &item->fresh->id : &item->decision->id, &fresh, error);
		if (fate == FATE_OK && fresh)
			fate = tell_standing(attempt, i, texts[i], error);
		if (fate != FATE_OK)
			return fate;
		replay->report->again += !fresh;
	}
	return FATE_OK;
}

static void count_written(const struct attempt *attempt)
{
	struct replay_report *report = attempt->replay->report;
	for (size_t i = 0; i < attempt->write.checkpoints_len; i++)
		report->states[attempt->write.checkpoints[i].checkpoint->state]++;
	for (size_t i = 0; i < attempt->write.inserts_len; i++)
		report->outcomes[attempt->write.inserts[i]->outcome]++;
}

static enum fate load_and_judge(struct attempt *attempt, char (**ret_texts)[TEXT_CAP], struct error *error)
{
	struct intake *desk = &attempt->replay->desk;
	struct judge_tally tally;
	enum fate fate = judge_request(attempt->items, attempt->len, desk->work, &attempt->request, error);
	if (fate == FATE_OK)
		fate = store_batch_begin(desk->store, &attempt->request, desk->work, &attempt->loaded, error);
	if (fate == FATE_OK)
		fate = take_stock(attempt, ret_texts, error);
	if (fate != FATE_OK)
		return fate;
	judge_again(attempt);
	return judge_batch(&desk->judge, attempt->items, attempt->len, &attempt->request, &attempt->loaded,
	                   desk->work, &attempt->write, &tally, error);
}

static void revive(struct attempt *attempt)
{
	for (size_t i = 0; attempt->standings != NULL && i < attempt->len; i++)
		if (attempt->standings[i] == STANDING_NO_CHECKPOINT)
			attempt->items[i]->dead = false;
}

static enum fate attempt_once(struct attempt *attempt, struct error *error)
{
	struct replay *replay = attempt->replay;
	struct intake *desk = &replay->desk;
	char(*texts)[TEXT_CAP];
	arena_reset(desk->work);
	attempt->standings = NULL;
	attempt->request =
		(struct batch_request){ .cluster_id = replay->worker.cluster_id, .look_only = !replay->writing };
	enum fate fate = load_and_judge(attempt, &texts, error);
	if (fate == FATE_OK && replay->writing) {
		fate = store_batch_write(desk->store, &attempt->write, error);
		if (fate == FATE_OK)
			fate = store_commit(desk->store, error);
	}
	if (fate != FATE_OK || !replay->writing)
		store_rollback(desk->store);
	if (fate == FATE_OK && replay->writing)
		count_written(attempt);
	else if (fate == FATE_OK)
		fate = tell_all(attempt, texts, error);
	revive(attempt);
	return fate;
}

/* ---- batches ---- */

/* One that the database refuses by itself, and never took: it has its dead letter. */
static void tell_refused(struct replay *replay, const struct item *item, const struct error *error)
{
	char text[sizeof(error->message) + 64];
	snprintf(text, sizeof(text), "the database refuses it: %s", error->message);
	tell(replay, REPLAY_UNREADABLE, item, text);
}

static enum fate run_items(struct replay *replay, struct item **items, size_t len, struct error *error)
{
	struct attempt attempt = { .replay = replay, .items = items, .len = len };
	enum fate fate = FATE_OK;
	uint64_t refusals = memory_refusals();
	for (int redo = 0; redo < REDO_MAX; redo++) {
		fate = attempt_once(&attempt, error);
		if (fate != FATE_RETRY || error->code != ERR_STALE)
			break;
	}
	if (fate == FATE_REJECT && error->code == ERR_MEMORY && memory_refusals() != refusals)
		fate = error->fate = FATE_RETRY; /* the allocator's, and not a ceiling's no */
	if (fate != FATE_REJECT)
		return fate;
	if (len == 1) {
		tell_refused(replay, items[0], error);
		return FATE_OK;
	}
	fate = run_items(replay, items, len / 2, error);
	return fate == FATE_OK ? run_items(replay, items + len / 2, len - len / 2, error) : fate;
}

enum fate replay_flush(struct replay *replay, struct error *error)
{
	enum fate fate = FATE_OK;
	for (size_t i = 0; i < replay->len; i++)
		replay->order[i] = &replay->items[i];
	if (replay->len > 0)
		fate = run_items(replay, replay->order, replay->len, error);
	replay->len = 0;
	replay->bytes = 0;
	arena_reset(replay->desk.arena);
	return fate;
}

static bool out_of_room(enum fate fate, const struct error *error, uint64_t refusals)
{
	return fate == FATE_RETRY && error->code == ERR_MEMORY && memory_refusals() == refusals;
}

static enum fate understand_once(struct replay *replay, struct item *item, struct error *error)
{
	const struct item unread = *item;
	for (;;) {
		uint64_t news = learn_count(&replay->worker);
		enum fate fate = intake_understand(&replay->desk, item, error);
		if (fate == FATE_RETRY && error->code == ERR_UNKNOWN_SCHEMA)
			fate = replay_await_schema(replay, news, error);
		else
			return fate;
		if (fate != FATE_OK)
			return fate;
		*item = unread;
	}
}

/* As intake does: what is there goes first where a batch's memory is used up. */
static enum fate understand(struct replay *replay, struct item *item, struct error *error)
{
	const struct item unread = *item;
	uint64_t refusals = memory_refusals();
	enum fate fate = understand_once(replay, item, error);
	if (out_of_room(fate, error, refusals) && replay->len > 0) {
		fate = replay_flush(replay, error);
		*item = unread;
		if (fate == FATE_OK)
			fate = understand_once(replay, item, error);
	}
	if (!out_of_room(fate, error, refusals))
		return fate;
	*item = unread;
	item->dead = true;
	(void)error_set(&item->why, FATE_REJECT, ERR_TOO_LARGE, "it takes more memory than one record may have");
	return FATE_OK;
}

enum fate replay_event(void *context, const struct scan_part *part, const struct record *record,
                       struct error *error)
{
	struct replay *replay = context;
	size_t bytes = record->key.len + record->value.len;
	enum fate fate = FATE_OK;
	(void)part;
	if (replay->len == replay->desk.items_cap || replay->bytes + bytes > replay->desk.bytes_cap)
		fate = replay_flush(replay, error);
	struct item item = { .record = *record, .suspend = replay->suspends };
	if (fate == FATE_OK)
		fate = understand(replay, &item, error);
	if (fate != FATE_OK)
		return fate;
	item.record = (struct record){ .at = record->at }; /* the rest goes with the record */
	replay->items[replay->len++] = item;
	replay->bytes += bytes;
	return FATE_OK;
}
