/*
 * tsan_threads.c - C11 threads as POSIX threads, for builds with ThreadSanitizer only. librdkafka uses the former,
 * which the sanitizer of gcc 12 does not know: a thread that it has not seen begin crashes in it, and locks that
 * it has not seen taken look like races. glibc's types of both kinds have the same layout.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <threads.h>

/* What librdkafka does by itself was not compiled for the sanitizer; our code that it calls was, and is looked at. */
const char *__tsan_default_suppressions(void);

const char *__tsan_default_suppressions(void)
{
	return "called_from_lib:librdkafka.so\nrace:^mtx_\nrace:^cnd_\n";
}

struct start {
	thrd_start_t function;
	void *argument;
};

static void *run(void *context)
{
	struct start start = *(struct start *)context;

	free(context);
	return (void *)(long)start.function(start.argument);
}

static int answer(int err)
{
	return !err ? thrd_success : err == EBUSY ? thrd_busy : err == ETIMEDOUT ? thrd_timedout : thrd_error;
}

int thrd_create(thrd_t *thread, thrd_start_t function, void *argument)
{
	struct start *start = malloc(sizeof(*start));

	if (!start)
		return thrd_nomem;
	*start = (struct start){ function, argument };
	return answer(pthread_create((pthread_t *)thread, NULL, run, start));
}

int thrd_join(thrd_t thread, int *ret_result)
{
	void *result;
	int err = pthread_join((pthread_t)thread, &result);

	if (!err && ret_result)
		*ret_result = (int)(long)result;
	return answer(err);
}

int thrd_detach(thrd_t thread)
{
	return answer(pthread_detach((pthread_t)thread));
}

int mtx_init(mtx_t *lock, int kind)
{
	pthread_mutexattr_t how;
	int err;

	pthread_mutexattr_init(&how);
	if (kind & mtx_recursive)
		pthread_mutexattr_settype(&how, PTHREAD_MUTEX_RECURSIVE);
	err = pthread_mutex_init((pthread_mutex_t *)lock, &how);
	pthread_mutexattr_destroy(&how);
	return answer(err);
}

int mtx_lock(mtx_t *lock)
{
	return answer(pthread_mutex_lock((pthread_mutex_t *)lock));
}

int mtx_trylock(mtx_t *lock)
{
	return answer(pthread_mutex_trylock((pthread_mutex_t *)lock));
}

int mtx_unlock(mtx_t *lock)
{
	return answer(pthread_mutex_unlock((pthread_mutex_t *)lock));
}

void mtx_destroy(mtx_t *lock)
{
	pthread_mutex_destroy((pthread_mutex_t *)lock);
}

int cnd_init(cnd_t *condition)
{
	return answer(pthread_cond_init((pthread_cond_t *)condition, NULL));
}

int cnd_signal(cnd_t *condition)
{
	return answer(pthread_cond_signal((pthread_cond_t *)condition));
}

int cnd_broadcast(cnd_t *condition)
{
	return answer(pthread_cond_broadcast((pthread_cond_t *)condition));
}

int cnd_wait(cnd_t *condition, mtx_t *lock)
{
	return answer(pthread_cond_wait((pthread_cond_t *)condition, (pthread_mutex_t *)lock));
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict lock, const struct timespec *restrict until)
{
	return answer(pthread_cond_timedwait((pthread_cond_t *)condition, (pthread_mutex_t *)lock, until));
}

void cnd_destroy(cnd_t *condition)
{
	pthread_cond_destroy((pthread_cond_t *)condition);
}
