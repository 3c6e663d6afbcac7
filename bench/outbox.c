/*
 * outbox.c - an outbox that is full before a worker runs. The decisions go in as intake would write them: by the store's own
 * statements, in batches, with rows in fermata.decision.
 */
#include "bench/outbox.h"

#include "store/store.h"

#include <stdlib.h>
#include <string.h>

#define BATCH       256
#define ARENA_BYTES ((size_t)64 << 20)

struct filling {
	struct run *run;
	struct store *store;
	struct arena *arena;
	char cluster_id[256];
	struct uuid ids[BATCH];
	struct decision decisions[BATCH];
	const struct decision *inserts[BATCH];
	struct checkpoint_write writes[BATCH];
};

static int compare(const void *a, const void *b)
{
	return uuid_compare(a, b);
}

static enum fate make_decision(struct filling *filling, const struct checkpoint *row,
                               struct decision *decision, struct error *error)
{
	char text[UUID_TEXT_LEN + 1];
	enum fate fate;

	*decision = (struct decision){
		.checkpoint_id = row->id,
		.outcome = OUTCOME_COUNTED,
		.kind = DECISION_APPROVE,
		.decided_by = { VIEW_LITERAL("bench"), VIEW_LITERAL("reviewer@example.com"),
		                VIEW_LITERAL("A Reviewer") },
		.decided_at = clock_real_us(),
		.stated_reason = VIEW_LITERAL("The plan is safe to run."),
		.stated_session = row->session_id,
		.source = { VIEW_LITERAL("bench"), VIEW_LITERAL(""), VIEW_LITERAL("") },
		.at = { run_topic(filling->run, PARAM_TOPICS_APPROVALS), 0, 0, clock_real_us() },
	};
	fate = uuid_make_v7(&decision->id, error);
	uuid_format(&decision->id, text);
	decision->id_text = arena_copy(filling->arena, view_of(text));
	return fate;
}

/* The verdict, as the judge would write it. */
static enum fate decide(struct filling *filling, struct checkpoint *row, size_t at, struct error *error)
{
	struct decision *decision = &filling->decisions[at];
	enum fate fate = make_decision(filling, row, decision, error);

	if (fate != FATE_OK)
		return fate;
	if (checkpoint_apply(row, EVENT_VERDICT) != TRANSITION_CHANGED)
		return error_set(error, FATE_FATAL, ERR_BUG, "a session of this run was decided already");
	row->has_verdict = true;
	row->verdict = VERDICT_APPROVED;
	row->decided_at = decision->at.appended_at;
	row->approvals = 1;
	row->changed_at = decision->at.appended_at;
	row->version = checkpoint_next_version(row, decision->at.appended_at);
	filling->inserts[at] = decision;
	filling->writes[at] = (struct checkpoint_write){
		.checkpoint = row, .outbox = true, .expiry_clear = true /* as intake does while resumes flow */
	};
	return FATE_OK;
}

static enum fate write_batch(struct filling *filling, size_t len, struct error *error)
{
	struct batch_request request = { .cluster_id = filling->cluster_id,
		                             .checkpoints = filling->ids,
		                             .checkpoints_len = len };
	struct batch_write write = { .checkpoints = filling->writes, .inserts = filling->inserts };
	struct batch_loaded loaded;
	enum fate fate = store_batch_begin(filling->store, &request, filling->arena, &loaded, error);

	if (fate == FATE_OK && (loaded.stale || loaded.checkpoints_len != len))
		fate = error_set(error, FATE_FATAL, ERR_BUG, "sessions of this run are not in the database");
	for (size_t i = 0; i < len && fate == FATE_OK; i++)
		fate = decide(filling, loaded.checkpoints[i], i, error);
	write.checkpoints_len = write.inserts_len = len;
	if (fate == FATE_OK)
		fate = store_batch_write(filling->store, &write, error);
	return fate == FATE_OK ? store_commit(filling->store, error) : fate;
}

static enum fate fill(struct filling *filling, uint32_t count, struct error *error)
{
	struct run *run = filling->run;
	enum fate fate = FATE_OK;

	for (uint32_t done = 0; done < count && fate == FATE_OK;) {
		size_t len = count - done < BATCH ? count - done : BATCH;
		memcpy(filling->ids, run->ids + run->decided, len * sizeof(*filling->ids));
		qsort(filling->ids, len, sizeof(*filling->ids), compare);
		fate = write_batch(filling, len, error);
		arena_reset(filling->arena);
		run->decided += (uint32_t)len;
		done += (uint32_t)len;
		run_progress(run, "filling the outbox", done, count);
		if (fate == FATE_OK)
			fate = run_goes_on(run, error);
	}
	return fate;
}

enum fate outbox_fill(struct run *run, uint32_t count, struct error *error)
{
	struct store_settings settings = { .dsn = run->place->dsn, .name = "fermata bench", .prepared = true };
	struct filling *filling = calloc(1, sizeof(*filling));
	enum fate fate;

	if (filling == NULL || (filling->arena = arena_new(ARENA_BYTES)) == NULL) {
		free(filling);
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the outbox");
	}
	filling->run = run;
	fate = database_text(run->database, "SELECT cluster_id FROM fermata.installation", filling->cluster_id,
	                     sizeof(filling->cluster_id), error);
	if (fate == FATE_OK)
		fate = store_open(&filling->store, &settings, error);
	if (fate == FATE_OK)
		fate = fill(filling, count, error);
	store_close(filling->store);
	arena_free(filling->arena);
	free(filling);
	return fate;
}
