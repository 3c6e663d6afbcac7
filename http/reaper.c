#include "http/reaper.h"

#include "core/clock.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

struct reaper_entry {
	int fd; /* -1: the place is free */
	bool headers_done;
	int64_t since_ms;
};

struct reaper {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stopping;
	int64_t headers_ms;
	int64_t connection_ms;
	unsigned max;
	struct reaper_entry entries[];
};

static void reap(struct reaper *reaper)
{
	int64_t now = clock_mono_ms();
	for (unsigned i = 0; i < reaper->max; i++) {
		const struct reaper_entry *entry = &reaper->entries[i];
		int64_t limit = entry->headers_done ? reaper->connection_ms : reaper->headers_ms;
		if (entry->fd >= 0 && now - entry->since_ms > limit)
			shutdown(entry->fd, SHUT_RDWR);
	}
}

static struct timespec after_ms(int64_t ms)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	int64_t ns = at.tv_nsec + ms % 1000 * 1000000;
	at.tv_sec += ms / 1000 + ns / 1000000000;
	at.tv_nsec = ns % 1000000000;
	return at;
}

/* Looks four times within the shortest deadline, at most each second. */
static void *run(void *context)
{
	struct reaper *reaper = context;
	int64_t shortest =
		reaper->headers_ms < reaper->connection_ms ? reaper->headers_ms : reaper->connection_ms;
	int64_t tick_ms = shortest / 4 < 1000 ? shortest / 4 + 1 : 1000;
	pthread_mutex_lock(&reaper->lock);
	while (!reaper->stopping) {
		struct timespec at = after_ms(tick_ms);
		pthread_cond_timedwait(&reaper->wake, &reaper->lock, &at);
		reap(reaper);
	}
	pthread_mutex_unlock(&reaper->lock);
	return NULL;
}

static void init_monotonic(pthread_cond_t *wake)
{
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(wake, &attributes);
	pthread_condattr_destroy(&attributes);
}

static void release(struct reaper *reaper)
{
	pthread_cond_destroy(&reaper->wake);
	pthread_mutex_destroy(&reaper->lock);
	free(reaper);
}

enum fate reaper_open(struct reaper **ret_reaper, unsigned max, unsigned headers_ms, unsigned connection_ms,
                      struct error *error)
{
	struct reaper *reaper = calloc(1, sizeof(*reaper) + max * sizeof(reaper->entries[0]));
	if (reaper == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory to watch %u connections", max);
	reaper->headers_ms = headers_ms;
	reaper->connection_ms = connection_ms;
	reaper->max = max;
	for (unsigned i = 0; i < max; i++)
		reaper->entries[i].fd = -1;
	pthread_mutex_init(&reaper->lock, NULL);
	init_monotonic(&reaper->wake);
	int code = pthread_create(&reaper->thread, NULL, run, reaper);
	if (code != 0) {
		release(reaper);
		return error_set_errno(error, FATE_FATAL, code, "cannot start the thread that watches connections");
	}
	*ret_reaper = reaper;
	return FATE_OK;
}

void reaper_close(struct reaper *reaper)
{
	pthread_mutex_lock(&reaper->lock);
	reaper->stopping = true;
	pthread_cond_signal(&reaper->wake);
	pthread_mutex_unlock(&reaper->lock);
	pthread_join(reaper->thread, NULL);
	release(reaper);
}

struct reaper_entry *reaper_watch(struct reaper *reaper, int fd)
{
	struct reaper_entry *found = NULL;
	pthread_mutex_lock(&reaper->lock);
	for (unsigned i = 0; i < reaper->max && found == NULL; i++) {
		if (reaper->entries[i].fd < 0)
			found = &reaper->entries[i];
	}
	if (found != NULL)
		*found = (struct reaper_entry){ .fd = fd, .since_ms = clock_mono_ms() };
	pthread_mutex_unlock(&reaper->lock);
	return found;
}

void reaper_headers_done(struct reaper *reaper, struct reaper_entry *entry)
{
	pthread_mutex_lock(&reaper->lock);
	entry->headers_done = true;
	pthread_mutex_unlock(&reaper->lock);
}

void reaper_leave(struct reaper *reaper, struct reaper_entry *entry)
{
	pthread_mutex_lock(&reaper->lock);
	entry->fd = -1;
	pthread_mutex_unlock(&reaper->lock);
}
