#include "core/deadline.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

struct deadline {
	deadline_work *work;
	void *context;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool ended;
	bool abandoned; /* nobody waits any more: the thread frees this */
};

static struct deadline *deadline_new(deadline_work *work, void *context)
{
	struct deadline *deadline = calloc(1, sizeof(*deadline));
	pthread_condattr_t monotonic;

	if (!deadline)
		return NULL;
	deadline->work = work;
	deadline->context = context;
	pthread_mutex_init(&deadline->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&deadline->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return deadline;
}

static void deadline_free(struct deadline *deadline)
{
	pthread_cond_destroy(&deadline->changed);
	pthread_mutex_destroy(&deadline->lock);
	free(deadline);
}

static void *run(void *argument)
{
	struct deadline *deadline = argument;
	bool abandoned;

	deadline->work(deadline->context);
	pthread_mutex_lock(&deadline->lock);
	deadline->ended = true;
	abandoned = deadline->abandoned;
	pthread_cond_signal(&deadline->changed);
	pthread_mutex_unlock(&deadline->lock);
	if (abandoned)
		deadline_free(deadline);
	return NULL;
}

static struct timespec time_after(int64_t ms)
{
	struct timespec at;

	clock_gettime(CLOCK_MONOTONIC, &at);
	at.tv_sec += ms / 1000;
	at.tv_nsec += ms % 1000 * 1000000;
	if (at.tv_nsec >= 1000000000) {
		at.tv_sec++;
		at.tv_nsec -= 1000000000;
	}
	return at;
}

static bool wait_ended(struct deadline *deadline, int64_t deadline_ms)
{
	struct timespec until = time_after(deadline_ms);
	bool ended;
	int err = 0;

	pthread_mutex_lock(&deadline->lock);
	while (!deadline->ended && !err)
		err = pthread_cond_timedwait(&deadline->changed, &deadline->lock, &until);
	ended = deadline->ended;
	deadline->abandoned = !ended;
	pthread_mutex_unlock(&deadline->lock);
	return ended;
}

bool deadline_run(deadline_work *work, void *context, int64_t deadline_ms, bool *ret_started)
{
	struct deadline *deadline = deadline_new(work, context);
	pthread_t thread;

	*ret_started = deadline && !pthread_create(&thread, NULL, run, deadline);
	if (!*ret_started) {
		if (deadline)
			deadline_free(deadline);
		return false;
	}
	if (!wait_ended(deadline, deadline_ms)) {
		pthread_detach(thread);
		return false;
	}
	pthread_join(thread, NULL);
	deadline_free(deadline);
	return true;
}
