/*
 * test_judge.h - what the tests of the judge share: a store that is arrays of rows, suspends and decisions
 * made in one line, and a batch judged against the one and written into the other. The store does no more
 * than store/store.h says, so that what the judge leaves out of a write is missing here too.
 */
#ifndef FERMATA_TESTS_UNIT_TEST_JUDGE_H
#define FERMATA_TESTS_UNIT_TEST_JUDGE_H

#include "worker/judge.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX      64
#define DECISIONS_MAX 4096
#define ITEMS_MAX     256
#define T0            INT64_C(1700000000000000) /* when the first record is appended, us */
#define SECOND        INT64_C(1000000)

struct world_row {
	struct checkpoint checkpoint;
	bool outbox;
	bool expiry;
	int64_t gate_version; /* of its row in gate_outbox; 0: there is none */
	int32_t unclaimed;
	size_t writes; /* how often it was written */
};

struct world {
	struct arena *kept;  /* what rows and items point to */
	struct arena *batch; /* one batch: what was loaded, and what the judge makes */
	struct judge_settings settings;
	struct judge_tally tally; /* of the last batch */
	bool dropping;            /* the answer of settings.drops */
	struct world_row rows[ROWS_MAX];
	size_t rows_len;
	struct decision decisions[DECISIONS_MAX];
	size_t decisions_len;
	struct horizon *horizons;
	size_t horizons_len;
	int64_t clock; /* the appended_at of the next record */
};

/* ---- a world ---- */

static inline bool world_drops(void *context, struct view tenant, struct view agent)
{
	(void)tenant;
	(void)agent;
	return ((struct world *)context)->dropping;
}

static inline struct world *world_new(void)
{
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	world->kept = arena_new((size_t)1 << 28);
	assert_non_null(world->kept);
	world->batch = arena_new((size_t)1 << 26);
	assert_non_null(world->batch);
	assert_true(world->kept != NULL && world->batch != NULL);
	world->settings =
		(struct judge_settings){ .unclaimed_max = 1000, .drops = world_drops, .context = world };
	world->clock = T0;
	return world;
}

static inline void world_free(struct world *world)
{
	arena_free(world->kept);
	arena_free(world->batch);
	free(world);
}

static inline struct uuid id_of(char kind, int number)
{
	struct uuid id = { { 0 } };

	id.bytes[0] = (uint8_t)kind;
	id.bytes[14] = (uint8_t)(number >> 8);
	id.bytes[15] = (uint8_t)number;
	return id;
}

static inline struct world_row *world_find(struct world *world, const struct uuid *id)
{
	for (size_t i = 0; i < world->rows_len; i++)
		if (uuid_compare(&world->rows[i].checkpoint.id, id) == 0)
			return &world->rows[i];
	return NULL;
}

/* The row of checkpoint `number`, which must be there. */
static inline struct world_row *row_of(struct world *world, int number)
{
	struct uuid id = id_of('c', number);
	struct world_row *row = world_find(world, &id);

	assert_non_null(row);
	return row;
}

static inline struct decision *decision_find(struct world *world, const struct uuid *id)
{
	for (size_t i = 0; i < world->decisions_len; i++)
		if (uuid_compare(&world->decisions[i].id, id) == 0)
			return &world->decisions[i];
	return NULL;
}

static inline struct decision *decision_of(struct world *world, int number)
{
	struct uuid id = id_of('d', number);
	struct decision *decision = decision_find(world, &id);

	assert_non_null(decision);
	return decision;
}

/* ---- items ---- */

/* What is not said is 0 and means the usual: session s, gate g, tenant t, seq 1, one approval, no end. */
struct suspend_args {
	const char *tenant;
	const char *session;
	const char *gate;
	int64_t seq;
	int64_t expires_at;
	enum on_expiry on_expiry;
	int32_t quorum;
	const char *approver;
	uint8_t bytes; /* another one makes another record of the same id */
};

static inline struct view text_or(const char *text, const char *usual)
{
	return view_of(text != NULL ? text : usual);
}

static inline struct item *suspend_item(struct world *world, int number, struct suspend_args args)
{
	struct item *item = arena_alloc(world->kept, sizeof(*item));
	struct checkpoint *fresh = arena_alloc(world->kept, sizeof(*fresh));

	assert_true(item != NULL && fresh != NULL);
	*fresh = (struct checkpoint){
		.id = id_of('c', number),
		.state = GATE_PENDING,
		.filled = true,
		.tenant = text_or(args.tenant, "t"),
		.session_id = text_or(args.session, "s"),
		.gate_id = text_or(args.gate, "g"),
		.agent = VIEW_LITERAL("agent"),
		.requested_by = VIEW_LITERAL("requester"),
		.suspend_seq = args.seq > 0 ? args.seq : 1,
		.appended_at = world->clock,
		.changed_at = world->clock,
		.decided_at = TIME_NONE,
		.required_approvals = args.quorum > 0 ? args.quorum : 1,
		.expires_at = args.expires_at != 0 ? args.expires_at : TIME_NONE,
		.on_expiry = args.on_expiry,
		.resumes_topic = VIEW_LITERAL("resumes"),
		.sealed.has_key = true,
	};
	if (args.approver != NULL) {
		fresh->approvers = arena_array(world->kept, 1, sizeof(*fresh->approvers));
		assert_non_null(fresh->approvers);
		fresh->approvers[0] = view_of(args.approver);
		fresh->approvers_len = 1;
	}
	memset(fresh->digest, number + 16 * args.bytes, DIGEST_LEN);
	item->suspend = true;
	item->fresh = fresh;
	item->record.at = (struct coordinates){ "suspends", 0, number, world->clock };
	world->clock += SECOND;
	return item;
}

/* Who is ann when not said; at is the time that the record was appended at, when it is not the clock's. */
struct decision_args {
	enum decision_kind kind;
	const char *who;
	const char *session;
	const char *reason;
	int64_t at;
	int digest; /* that of checkpoint `digest`; 0: none stated */
	uint8_t bytes;
};

static inline struct item *decision_item(struct world *world, int number, int checkpoint,
                                         struct decision_args args)
{
	struct item *item = arena_alloc(world->kept, sizeof(*item));
	struct decision *decision = arena_alloc(world->kept, sizeof(*decision));

	assert_true(item != NULL && decision != NULL);
	*decision = (struct decision){
		.id = id_of('d', number),
		.checkpoint_id = id_of('c', checkpoint),
		.kind = args.kind,
		.decided_by = { VIEW_LITERAL("local"), text_or(args.who, "ann"), VIEW_LITERAL("") },
		.stated_session = text_or(args.session, ""),
		.stated_reason = view_of(args.reason),
		.has_digest = args.digest != 0,
		.at = { "approvals", 0, number, args.at != 0 ? args.at : world->clock },
	};
	memset(decision->checkpoint_digest, args.digest, DIGEST_LEN);
	memset(decision->record_digest, number + 16 * args.bytes, DIGEST_LEN);
	item->decision = decision;
	item->record.at = decision->at;
	world->clock += SECOND;
	return item;
}

#define SUSPEND(number, ...) suspend_item(w, number, (struct suspend_args){ __VA_ARGS__ })
#define DECIDE(number, checkpoint, ...)                                                                      \
	decision_item(w, number, checkpoint, (struct decision_args){ __VA_ARGS__ })
#define APPROVE(number, checkpoint)       DECIDE(number, checkpoint, .kind = DECISION_APPROVE)
#define APPROVE_BY(number, checkpoint, p) DECIDE(number, checkpoint, .kind = DECISION_APPROVE, .who = (p))
#define REJECT(number, checkpoint)        DECIDE(number, checkpoint, .kind = DECISION_REJECT)
#define CANCEL(number, checkpoint)        DECIDE(number, checkpoint, .kind = DECISION_CANCEL)

/* ---- loading ---- */

static inline void *batch_array(struct world *world, size_t count, size_t size)
{
	void *items = arena_array(world->batch, count, size);

	assert_non_null(items);
	return items;
}

static inline bool in_line(const struct checkpoint *row, const struct line *line)
{
	return row->filled && view_equal(row->tenant, line->tenant) &&
	       view_equal(row->session_id, line->session_id) && view_equal(row->gate_id, line->gate_id);
}

static inline bool among_ids(const struct uuid *ids, size_t len, const struct uuid *id)
{
	for (size_t i = 0; i < len; i++)
		if (uuid_compare(&ids[i], id) == 0)
			return true;
	return false;
}

static inline bool is_asked(const struct batch_request *request, const struct checkpoint *row)
{
	if (among_ids(request->checkpoints, request->checkpoints_len, &row->id))
		return true;
	for (size_t i = 0; i < request->lines_len; i++)
		if (in_line(row, &request->lines[i]) && checkpoint_is_open(row))
			return true;
	return false;
}

static inline int by_checkpoint(const void *a, const void *b)
{
	return uuid_compare(&(*(struct checkpoint *const *)a)->id, &(*(struct checkpoint *const *)b)->id);
}

static inline void load_rows(struct world *world, const struct batch_request *request,
                             struct batch_loaded *loaded)
{
	loaded->checkpoints = batch_array(world, world->rows_len, sizeof(*loaded->checkpoints));
	loaded->highest = batch_array(world, request->lines_len, sizeof(*loaded->highest));
	for (size_t i = 0; i < world->rows_len; i++) {
		const struct checkpoint *row = &world->rows[i].checkpoint;
		loaded->unclaimed += world->rows[i].unclaimed;
		for (size_t j = 0; j < request->lines_len; j++)
			if (in_line(row, &request->lines[j]) && row->suspend_seq > loaded->highest[j])
				loaded->highest[j] = row->suspend_seq;
		if (!is_asked(request, row))
			continue;
		struct checkpoint *copy = batch_array(world, 1, sizeof(*copy));
		*copy = *row;
		loaded->checkpoints[loaded->checkpoints_len++] = copy;
	}
	qsort(loaded->checkpoints, loaded->checkpoints_len, sizeof(*loaded->checkpoints), by_checkpoint);
	if (!request->count_unclaimed)
		loaded->unclaimed = 0;
}

/* They are kept in the order of their seq. */
static inline void load_decisions(struct world *world, const struct batch_request *request,
                                  struct batch_loaded *loaded)
{
	loaded->decisions = batch_array(world, world->decisions_len, sizeof(*loaded->decisions));
	for (size_t i = 0; i < world->decisions_len; i++) {
		const struct decision *decision = &world->decisions[i];
		bool asked = among_ids(request->decisions, request->decisions_len, &decision->id);
		bool of_row = among_ids(request->checkpoints, request->checkpoints_len, &decision->checkpoint_id) &&
		              decision->outcome != OUTCOME_REFUSED;
		if (!asked && !of_row)
			continue;
		struct decision *copy = batch_array(world, 1, sizeof(*copy));
		*copy = *decision;
		loaded->decisions[loaded->decisions_len++] = copy;
	}
}

/* ---- writing ---- */

static inline struct view keep_view(struct world *world, struct view view)
{
	if (view_is_null(view))
		return VIEW_NULL;
	struct view copy = arena_copy(world->kept, view);
	assert_false(view_is_null(copy));
	return copy;
}

/* The columns that an update writes without a suspend event. */
static inline void write_state(struct world *world, struct checkpoint *row, const struct checkpoint *from)
{
	row->state = from->state;
	row->published = from->published;
	row->held = from->held;
	row->from_ledger = from->from_ledger;
	row->approvals = from->approvals;
	row->has_verdict = from->has_verdict;
	row->verdict = from->verdict;
	row->decided_at = from->decided_at;
	row->version = from->version;
	row->changed_at = from->changed_at;
	row->reason = keep_view(world, from->reason);
}

static inline void write_event(struct checkpoint *row, const struct checkpoint *from)
{
	const struct checkpoint before = *row;

	*row = *from; /* what a suspend event says points into world->kept already */
	row->reason = before.reason;
	row->ledger_decisions = before.ledger_decisions;
	row->ledger_decisions_len = before.ledger_decisions_len;
}

static inline void write_lists(struct world_row *row, const struct checkpoint_write *write)
{
	const struct checkpoint *checkpoint = write->checkpoint;

	if (write->outbox) {
		assert_int_equal(checkpoint->state, GATE_DECIDED);
		assert_true(checkpoint->has_verdict && checkpoint->filled);
		row->outbox = true;
	}
	if (write->gate_event) {
		assert_true(checkpoint->filled);
		assert_true(checkpoint->version > row->gate_version);
		row->gate_version = checkpoint->version;
	}
	assert_false(write->expiry_set && write->expiry_clear);
	row->expiry = write->expiry_set || (row->expiry && !write->expiry_clear);
	row->unclaimed = write->unclaimed_clear ? 0 : row->unclaimed + write->unclaimed_add;
}

static inline void write_row(struct world *world, const struct checkpoint_write *write)
{
	struct world_row *row = world_find(world, &write->checkpoint->id);

	assert_true(write->insert == (row == NULL));
	if (write->insert) {
		assert_true(world->rows_len < ROWS_MAX);
		row = &world->rows[world->rows_len++];
		memset(row, 0, sizeof(*row));
		row->checkpoint = (struct checkpoint){ .id = write->checkpoint->id, .expires_at = TIME_NONE };
	}
	assert_true(write->checkpoint->version >= row->checkpoint.version);
	if (write->fill)
		write_event(&row->checkpoint, write->checkpoint);
	write_state(world, &row->checkpoint, write->checkpoint);
	write_lists(row, write);
	row->writes++;
}

static inline void write_decisions(struct world *world, const struct batch_write *write)
{
	for (size_t i = 0; i < write->updates_len; i++) {
		struct decision *row = decision_find(world, &write->updates[i]->id);
		assert_non_null(row);
		assert_int_equal(row->outcome, OUTCOME_WAITING);
		row->outcome = write->updates[i]->outcome;
		row->refusal = write->updates[i]->refusal;
		row->outcome_reason = keep_view(world, write->updates[i]->outcome_reason);
	}
	for (size_t i = 0; i < write->inserts_len; i++) {
		assert_null(decision_find(world, &write->inserts[i]->id));
		assert_true(world->decisions_len < DECISIONS_MAX);
		struct decision *row = &world->decisions[world->decisions_len++];
		*row = *write->inserts[i];
		row->outcome_reason = keep_view(world, row->outcome_reason);
		row->seq = (int64_t)world->decisions_len;
	}
}

static inline void world_write(struct world *world, const struct batch_write *write)
{
	for (size_t i = 0; i < write->checkpoints_len; i++) {
		if (i > 0)
			assert_true(uuid_compare(&write->checkpoints[i - 1].checkpoint->id,
			                         &write->checkpoints[i].checkpoint->id) < 0);
		write_row(world, &write->checkpoints[i]);
	}
	write_decisions(world, write);
}

/* ---- judging ---- */

static inline enum fate judge_only(struct world *world, struct item **items, size_t len,
                                   struct batch_write *ret_write)
{
	struct batch_request request = { 0 };
	struct batch_loaded loaded = { 0 };
	struct error error = { 0 };

	arena_reset(world->batch);
	assert_int_equal(judge_request(items, len, world->batch, &request, &error), FATE_OK);
	load_rows(world, &request, &loaded);
	load_decisions(world, &request, &loaded);
	loaded.horizons = world->horizons;
	loaded.horizons_len = world->horizons_len;
	return judge_batch(&world->settings, items, len, &request, &loaded, world->batch, ret_write,
	                   &world->tally, &error);
}

/* One batch, judged and written. */
static inline void judge_items(struct world *world, struct item **items, size_t len)
{
	struct batch_write write;

	assert_int_equal(judge_only(world, items, len, &write), FATE_OK);
	world_write(world, &write);
}

#define BATCH(...)                                                                                           \
	do {                                                                                                     \
		struct item *batch_[] = { __VA_ARGS__ };                                                             \
		judge_items(w, batch_, sizeof(batch_) / sizeof(batch_[0]));                                          \
	} while (0)

/* ---- what tests say ---- */

#define assert_state(number, wanted) assert_int_equal(row_of(w, number)->checkpoint.state, wanted)
#define assert_counted(number)       assert_int_equal(decision_of(w, number)->outcome, OUTCOME_COUNTED)
#define assert_waiting(number)       assert_int_equal(decision_of(w, number)->outcome, OUTCOME_WAITING)

static inline void check_refused(const struct decision *decision, const char *name)
{
	struct view reason = decision->outcome_reason;
	size_t len = strlen(name);

	assert_int_equal(decision->outcome, OUTCOME_REFUSED);
	assert_true(reason.len > len && memcmp(reason.data, name, len) == 0 && reason.data[len] == ':');
}

#define assert_refused(number, name) check_refused(decision_of(w, number), name)

static inline void check_verdict(const struct world_row *row, enum verdict verdict)
{
	assert_int_equal(row->checkpoint.state, GATE_DECIDED);
	assert_true(row->checkpoint.has_verdict);
	assert_int_equal(row->checkpoint.verdict, verdict);
	assert_true(row->outbox);
	assert_false(row->expiry);
	assert_true(row->gate_version == row->checkpoint.version);
}

#define assert_decided(number, verdict) check_verdict(row_of(w, number), verdict)

#endif
