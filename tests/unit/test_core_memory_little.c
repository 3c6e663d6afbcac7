// links: core
// What a burst in another thread left in its heap goes back to the system, though no malloc_trim reaches it. A program of its
// own, for it is a setting of the whole process.
#include "core/memory.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define OWN_ALLOCATOR
#endif
#elif defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_ALLOCATOR
#endif

#define PIECES 400
#define PIECE  ((size_t)40000) /* small enough for the heap */
#define ONE    ((size_t)24 << 20)
#define LEFT   ((size_t)64 << 10) /* half of what glibc leaves at the end of a heap by itself */

/* Of its own, counted page by page: what statm says may be wrong by dozens of them. 0: nobody counts them here. */
static size_t resident(void)
{
	char line[256];
	unsigned long kib = 0;
	FILE *file = fopen("/proc/self/smaps_rollup", "re");

	if (file == NULL)
		return 0;
	while (fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, "Anonymous:", 10) == 0)
			kib = strtoul(line + 10, NULL, 10);
	fclose(file);
	return (size_t)kib * 1024;
}

struct burst {
	pthread_barrier_t made, over;
	void *one; /* here, or the compiler makes nothing of it */
	void *pieces[PIECES];
};

/* As a thread of librdkafka: what it has allocated others free, and it lives on. */
static void *make(void *argument)
{
	struct burst *burst = argument;

	burst->one = malloc(ONE); /* what glibc learns its limits from */
	if (burst->one != NULL)
		memset(burst->one, 1, ONE);
	pthread_barrier_wait(&burst->made);
	pthread_barrier_wait(&burst->made);
	for (size_t i = 0; i < PIECES; i++) {
		burst->pieces[i] = malloc(PIECE);
		if (burst->pieces[i] != NULL)
			memset(burst->pieces[i], 1, PIECE);
	}
	pthread_barrier_wait(&burst->made);
	pthread_barrier_wait(&burst->over);
	return NULL;
}

static void a_burst_leaves_little(void **state)
{
	static struct burst burst;
	pthread_t thread;

	(void)state;
	memory_keep_little();
	pthread_barrier_init(&burst.made, NULL, 2);
	pthread_barrier_init(&burst.over, NULL, 2);
	assert_int_equal(pthread_create(&thread, NULL, make, &burst), 0);
	pthread_barrier_wait(&burst.made);
	free(burst.one);
	size_t before = resident();
	pthread_barrier_wait(&burst.made);
	pthread_barrier_wait(&burst.made);
	size_t most = resident();
	for (size_t i = 0; i < PIECES; i++)
		free(burst.pieces[i]);
	memory_give_back();
	size_t after = resident();
	pthread_barrier_wait(&burst.over);
	pthread_join(thread, NULL);
	if (before == 0)
		skip();
#if defined(__GLIBC__) && !defined(OWN_ALLOCATOR)
	assert_true(most > before + PIECES * PIECE / 2);
	assert_true(after < before + LEFT);
#else
	(void)before, (void)most, (void)after;
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_burst_leaves_little) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
