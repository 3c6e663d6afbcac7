/*
 * The second thread of an intake: it has a batch with PostgreSQL while the next one is collected. A batch is given to
 * it, and what came of it is taken up, under the mutex; so what the one thread has written the other one sees.
 */
#include "worker/intake.h"

#include "core/failpoint.h"
#include "core/log.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

enum stage_state {
	STAGE_FREE,    /* nothing was given, or its end was taken up */
	STAGE_STORING, /* the batch is the thread's */
	STAGE_ENDED,   /* its end is there */
};

struct stage {
	struct intake *intake;
	pthread_t thread;
	pthread_mutex_t mutex; /* of what follows; state is written under it and may be read without */
	pthread_cond_t changed;
	_Atomic enum stage_state state;
	bool closing;
	struct batch batch;
	enum fate fate; /* of the last one, with its error */
	struct error error;
};

/* ---- the thread ---- */

static enum fate store(struct stage *stage, struct error *error)
{
	enum fate fate = intake_store(stage->intake, &stage->batch, error);
	return fate == FATE_OK ? failpoint(FAILPOINT_INTAKE_STORED, error) : fate;
}

static void end(struct stage *stage, enum fate fate, const struct error *error)
{
	pthread_mutex_lock(&stage->mutex);
	stage->fate = fate;
	stage->error = *error;
	atomic_store(&stage->state, STAGE_ENDED);
	pthread_cond_broadcast(&stage->changed);
	pthread_mutex_unlock(&stage->mutex);
	reader_stop_waiting(stage->intake->reader);
}

static void *stage_thread(void *argument)
{
	struct stage *stage = argument;
	pthread_setname_np(pthread_self(), "intake stores");
	pthread_mutex_lock(&stage->mutex);
	for (;;) {
		while (!stage->closing && atomic_load(&stage->state) != STAGE_STORING)
			pthread_cond_wait(&stage->changed, &stage->mutex);
		if (atomic_load(&stage->state) != STAGE_STORING)
			break;
		pthread_mutex_unlock(&stage->mutex);
		struct error error = { 0 };
		enum fate fate = store(stage, &error);
		end(stage, fate, &error);
		pthread_mutex_lock(&stage->mutex);
	}
	pthread_mutex_unlock(&stage->mutex);
	return NULL;
}

/* ---- open and close ---- */

static void stage_free(struct stage *stage)
{
	arena_free(stage->batch.arena);
	free(stage->batch.items);
	free(stage->batch.order);
	pthread_cond_destroy(&stage->changed);
	pthread_mutex_destroy(&stage->mutex);
	free(stage);
}

enum fate intake_stage_open(struct intake *intake, struct error *error)
{
	struct stage *stage = calloc(1, sizeof(*stage));
	if (stage == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for intake");
	stage->intake = intake;
	pthread_mutex_init(&stage->mutex, NULL);
	pthread_cond_init(&stage->changed, NULL);
	stage->batch.items = calloc(intake->items_cap, sizeof(*stage->batch.items));
	stage->batch.order = calloc(intake->items_cap, sizeof(*stage->batch.order));
	stage->batch.arena = arena_new(intake->arena_cap);
	bool there = stage->batch.items != NULL && stage->batch.order != NULL && stage->batch.arena != NULL;
	if (!there || pthread_create(&stage->thread, NULL, stage_thread, stage) != 0) {
		stage_free(stage);
		return error_set(error, FATE_FATAL, there ? ERR_SYSTEM : ERR_MEMORY, "no %s for intake",
		                 there ? "second thread" : "memory");
	}
	intake->stage = stage;
	return FATE_OK;
}

void intake_stage_close(struct intake *intake)
{
	struct stage *stage = intake->stage;
	if (stage == NULL)
		return;
	pthread_mutex_lock(&stage->mutex);
	stage->closing = true;
	pthread_cond_broadcast(&stage->changed);
	pthread_mutex_unlock(&stage->mutex);
	pthread_join(stage->thread, NULL);
	intake_batch_done(&stage->batch);
	stage_free(stage);
	intake->stage = NULL;
}

/* ---- the collecting thread's side ---- */

bool intake_is_storing(const struct intake *intake)
{
	return intake->stage != NULL && atomic_load(&intake->stage->state) != STAGE_FREE;
}

bool intake_has_ended(const struct intake *intake)
{
	return intake->stage != NULL && atomic_load(&intake->stage->state) == STAGE_ENDED;
}

void intake_wait(struct intake *intake)
{
	struct stage *stage = intake->stage;
	if (!intake_is_storing(intake))
		return;
	pthread_mutex_lock(&stage->mutex);
	while (atomic_load(&stage->state) == STAGE_STORING)
		pthread_cond_wait(&stage->changed, &stage->mutex);
	pthread_mutex_unlock(&stage->mutex);
}

enum fate intake_settle(struct intake *intake, struct error *error)
{
	struct stage *stage = intake->stage;
	if (!intake_is_storing(intake))
		return FATE_OK;
	intake_wait(intake);
	enum fate fate = stage->fate;
	if (fate != FATE_OK)
		*error = stage->error;
	intake_batch_done(&stage->batch);
	atomic_store(&stage->state, STAGE_FREE);
	if (fate != FATE_OK)
		return fate;
	intake_stored(intake);
	return failpoint(FAILPOINT_INTAKE_SETTLED, error);
}

/* What was collected is the other thread's, and what that one had is collected into. */
static void give(struct intake *intake)
{
	struct stage *stage = intake->stage;
	struct batch batch = { intake->items, intake->order, intake->items_len, intake->arena };
	intake->items = stage->batch.items;
	intake->order = stage->batch.order;
	intake->arena = stage->batch.arena;
	intake->items_len = 0;
	intake->bytes = 0;
	pthread_mutex_lock(&stage->mutex);
	stage->batch = batch;
	atomic_store(&stage->state, STAGE_STORING);
	pthread_cond_broadcast(&stage->changed);
	pthread_mutex_unlock(&stage->mutex);
}

enum fate intake_pass_on(struct intake *intake, struct error *error)
{
	if (intake->stage == NULL)
		return intake_run_batch(intake, error);
	enum fate fate = intake_settle(intake, error);
	if (fate != FATE_OK)
		return fate;
	intake_close_batch(intake);
	atomic_store(&intake->worker->behind, intake->full);
	fate = failpoint(FAILPOINT_INTAKE_CLOSED, error);
	if (fate == FATE_OK)
		give(intake);
	return fate;
}
