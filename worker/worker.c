#include "worker/worker.h"
#include "worker/health.h"
#include "worker/learn.h"
#include "worker/rivals.h"
#include "worker/startup.h"

#include "core/log.h"
#include "core/metrics.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define TICK_MS       250
#define REST_MS       10000 /* so long nothing was done: what was needed for it goes back to the system */
#define DRAIN_AWAY_MS 60000 /* contract.md: 69 when a service stays away for 60 s */
#define STOP_MS       9000  /* SIGTERM: exit 0 within 10 s */
#define GUARD_TICK_MS 20
#define CLOSE_MS      500
#define CONNECT_S     5 /* to PostgreSQL: a stop waits for it */

/* ---- what the threads share ---- */

bool worker_stopping(const struct worker *worker)
{
	return atomic_load(&worker->stopping);
}

void worker_stop(struct worker *worker)
{
	pthread_mutex_lock(&worker->mutex);
	atomic_store(&worker->stopping, true);
	pthread_cond_broadcast(&worker->stop_changed);
	pthread_mutex_unlock(&worker->mutex);
}

bool worker_wait(struct worker *worker, int64_t ms)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += (time_t)(ms / 1000);
	until.tv_nsec += (long)(ms % 1000) * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&worker->mutex);
	while (!worker_stopping(worker) &&
	       pthread_cond_timedwait(&worker->stop_changed, &worker->mutex, &until) != ETIMEDOUT)
		;
	pthread_mutex_unlock(&worker->mutex);
	return worker_stopping(worker);
}

void worker_fail(struct worker *worker, const char *room, const struct error *error)
{
	if (!worker->quiet)
		log_error(LOG_LEVEL_ERROR, room, error);
	pthread_mutex_lock(&worker->mutex);
	if (!atomic_load(&worker->failed)) {
		worker->failure = *error;
		atomic_store(&worker->exit_code, error_exit_code(error));
		atomic_store(&worker->failed, true);
	}
	pthread_mutex_unlock(&worker->mutex);
	worker_stop(worker);
}

void worker_part_ok(struct worker *worker, enum worker_part part, bool ok)
{
	int64_t none = 0;
	if (ok)
		atomic_store(&worker->away_since_ms[part], 0);
	else /* keeps the first moment */
		(void)atomic_compare_exchange_strong(&worker->away_since_ms[part], &none, clock_mono_ms());
}

void worker_part_waits_for(struct worker *worker, enum worker_part part, enum wait_reason reason)
{
	atomic_store(&worker->waits_for[part], (int)reason);
	worker_part_ok(worker, part, false);
}

void worker_part_waits(struct worker *worker, enum worker_part part, const struct error *error)
{
	bool read_only = strcmp(error->native, SQLSTATE_READ_ONLY) == 0;
	worker_part_waits_for(worker, part, read_only ? WAIT_READ_ONLY : WAIT_WORLD);
}

int64_t worker_away_ms(const struct worker *worker)
{
	int64_t longest = 0, now = clock_mono_ms();
	for (int i = 0; i < PART_COUNT; i++) {
		int64_t since = atomic_load(&worker->away_since_ms[i]);
		if (since != 0 && now - since >= longest)
			longest = now - since + 1;
	}
	return longest;
}

enum fate worker_open_store(const struct worker *worker, const char *room, struct store **ret_store,
                            struct error *error)
{
	char name[64] = "fermata ";
	strncat(name, room, sizeof(name) - sizeof("fermata "));
	struct store_settings settings = {
		.dsn = config_text(worker->config, PARAM_POSTGRES_DSN),
		.name = name,
		.prepared = config_flag(worker->config, PARAM_POSTGRES_PREPARED),
		.steady = true,
		.connect_timeout_s = CONNECT_S,
	};
	return store_open(ret_store, &settings, error);
}

int32_t worker_partitions(const struct worker *worker, const char *topic)
{
	for (size_t i = 0; i < worker->topics_len; i++)
		if (view_equal_text(worker->topics[i].topic, topic))
			return worker->topics[i].partitions;
	return 0;
}

/* ---- signals ---- */

static void block_signals(sigset_t *ret_set)
{
	sigemptyset(ret_set);
	sigaddset(ret_set, SIGTERM);
	sigaddset(ret_set, SIGINT);
	sigaddset(ret_set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, ret_set, NULL);
	signal(SIGPIPE, SIG_IGN);
}

static void reload_keys(struct worker *worker)
{
	struct error error;
	if (vault_reload(worker->vault, &error) == FATE_OK)
		log_info("worker", "SIGHUP: the keyring was read again");
	else
		log_error(LOG_LEVEL_ERROR, "worker", &error);
}

/* Waits for a signal or the time; true when the worker is to stop. */
static bool wait_signal(struct worker *worker, const sigset_t *set, int64_t ms)
{
	struct timespec timeout = { (time_t)(ms / 1000), (long)(ms % 1000) * 1000000 };
	int signal_number = sigtimedwait(set, NULL, &timeout);
	if (signal_number == SIGHUP && worker->vault != NULL)
		reload_keys(worker);
	if (signal_number == SIGTERM || signal_number == SIGINT) {
		log_info("worker", "asked to stop: what is under way is finished first");
		worker_stop(worker);
	}
	return worker_stopping(worker);
}

bool worker_pause(struct worker *worker, int64_t ms)
{
	sigset_t set;
	block_signals(&set);
	return wait_signal(worker, &set, ms);
}

/* ---- looking on: gauges, and the end of a drain ---- */

struct watch {
	struct worker *worker;
	struct drain *drain; /* NULL: it is none */
	struct health *health;
	int64_t done; /* batches and transactions when something was last seen to be done */
	int64_t done_ms;
	bool rested;
	struct rivals rivals;
};

/* A burst leaves the heap as large as it had to be. Sessions that sleep need nothing of it. */
static void watch_rest(struct watch *watch)
{
	int64_t done =
		metrics_get(METRIC_BATCHES) + metrics_get(METRIC_RESUMES) + metrics_get(METRIC_GATE_EVENTS);
	if (done != watch->done) {
		watch->done = done;
		watch->done_ms = clock_mono_ms();
		watch->rested = false;
	} else if (!watch->rested && clock_mono_ms() - watch->done_ms > REST_MS) {
		memory_give_back();
		watch->rested = true;
		metrics_add(METRIC_REST, 1);
	}
}

static void watch_drain(struct worker *worker, struct drain *drain)
{
	struct error error = { 0 };
	bool done = false;
	enum fate fate = drain_look(drain, worker, &done, &error);
	if (fate == FATE_FATAL) {
		worker_fail(worker, "drain", &error);
		return;
	}
	if (fate != FATE_OK)
		log_error(LOG_LEVEL_DEBUG, "drain", &error);
	if (done && drain->held) {
		(void)error_set(&error, FATE_RETRY, ERR_STALE,
		                "drain: what is left may need a file of schemas.path that cannot be used: mend that "
		                "(`fermata doctor` says which), then run it again");
		worker_fail(worker, "worker", &error);
	} else if (done && (drain->stopped_ms != 0 || drain->alarmed)) {
		(void)error_set(
			&error, FATE_RETRY, ERR_STALE,
			"drain: a partition is %s; all others are done: look at the lines above, %s, then run it again",
			drain->alarmed ? "left alone, for what was to be read next is not there"
						   : "stopped, for most of its records become dead letters",
			drain->alarmed ? "and at docs/recovery.md" : "mend it or let them through");
		worker_fail(worker, "worker", &error);
	} else if (done) {
		log_info("worker", "drained: everything that stood on the topics at the start is dealt with");
		worker_stop(worker);
	}
	int64_t away = fate == FATE_OK             ? worker_away_ms(worker)
	               : drain->away_since_ms == 0 ? 0
	                                           : clock_mono_ms() - drain->away_since_ms;
	if (!done && away > DRAIN_AWAY_MS) {
		(void)error_set(
			&error, FATE_RETRY, ERR_SERVICE,
			"drain: Kafka, PostgreSQL or the schema registry stayed away for a minute: look at the "
			"lines above, then run it again");
		worker_fail(worker, "worker", &error);
	}
}

/* What it asks may take its time when a service is away: the main thread stays free for the signals. */
static void *watch_thread(void *argument)
{
	struct watch *watch = argument;
	while (!worker_wait(watch->worker, TICK_MS)) {
		health_tick(watch->health, watch->worker);
		watch_rest(watch);
		rivals_tick(&watch->rivals, watch->worker);
		if (watch->drain != NULL)
			watch_drain(watch->worker, watch->drain);
	}
	return NULL;
}

/* ---- threads ---- */

struct threads {
	pthread_t ids[5];
	size_t len;
};

static enum fate start_thread(struct threads *threads, void *(*run)(void *), void *argument,
                              struct error *error)
{
	if (pthread_create(&threads->ids[threads->len], NULL, run, argument) != 0)
		return error_set(error, FATE_FATAL, ERR_SYSTEM, "no more threads can be started");
	threads->len++;
	return FATE_OK;
}

static enum fate start_threads(struct worker *worker, struct watch *watch, struct threads *threads,
                               struct error *error)
{
	enum fate fate = shards_new(worker, error);
	if (fate == FATE_OK)
		fate = start_thread(threads, shards_thread, worker, error);
	if (fate == FATE_OK)
		fate = start_thread(threads, intake_thread, worker, error);
	if (fate == FATE_OK)
		fate = start_thread(threads, reaper_thread, worker, error);
	if (fate == FATE_OK)
		fate = start_thread(threads, learn_thread, worker, error);
	return fate == FATE_OK ? start_thread(threads, watch_thread, watch, error) : fate;
}

/* Librdkafka's close may hang: everything that matters is in PostgreSQL and Kafka by then. */
struct guard {
	struct worker *worker;
	pthread_t thread;
	bool started;
	_Atomic bool over;
};

static void *guard_thread(void *argument)
{
	struct guard *guard = argument;
	const struct timespec tick = { 0, GUARD_TICK_MS * 1000000L };
	int64_t until_ms = clock_mono_ms() + STOP_MS;
	while (!atomic_load(&guard->over) && clock_mono_ms() < until_ms)
		(void)nanosleep(&tick, NULL);
	if (atomic_load(&guard->over))
		return NULL;
	log_warn("worker", "not everything has ended in time: leaving all the same, nothing is lost by it");
	_exit(atomic_load(&guard->worker->exit_code));
}

static void guard_begin(struct guard *guard, struct worker *worker)
{
	*guard = (struct guard){ .worker = worker };
	guard->started = pthread_create(&guard->thread, NULL, guard_thread, guard) == 0;
}

static void guard_end(struct guard *guard)
{
	atomic_store(&guard->over, true);
	if (guard->started)
		pthread_join(guard->thread, NULL);
}

/* ---- the life of a worker ---- */

static void work(struct worker *worker, struct watch *watch, const sigset_t *set)
{
	struct threads threads = { .len = 0 };
	struct error error = { 0 };
	if (start_threads(worker, watch, &threads, &error) != FATE_OK)
		worker_fail(worker, "worker", &error);
	else
		log_info("worker", "running in group %s on cluster %s",
		         config_text(worker->config, PARAM_WORKER_GROUP), worker->cluster_id);
	while (!wait_signal(worker, set, TICK_MS))
		;
	struct guard guard;
	guard_begin(&guard, worker);
	learn_interrupt(worker);
	for (size_t i = 0; i < threads.len; i++)
		pthread_join(threads.ids[i], NULL);
	shards_free(worker);
	health_stop(watch->health);
	guard_end(&guard);
}

static enum fate run_threads(struct worker *worker, const struct worker_options *options, const sigset_t *set,
                             struct health *health, struct error *error)
{
	struct drain drain = { 0 };
	struct watch watch = {
		.worker = worker, .drain = options->drain ? &drain : NULL, .health = health, .rested = true
	};
	enum fate fate = options->drain ? drain_init(&drain, worker, error) : FATE_OK;
	if (fate == FATE_OK)
		work(worker, &watch, set);
	drain_done(&drain);
	return fate;
}

void worker_init(struct worker *worker, const struct config *config)
{
	*worker = (struct worker){ .config = config };
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_mutex_init(&worker->mutex, NULL);
	pthread_cond_init(&worker->stop_changed, &attributes);
	pthread_condattr_destroy(&attributes);
}

void worker_done(struct worker *worker)
{
	reader_close(worker->ends, CLOSE_MS);
	vault_close(worker->vault);
	learn_close(worker);
	arena_free(worker->arena);
	pthread_cond_destroy(&worker->stop_changed);
	pthread_mutex_destroy(&worker->mutex);
}

int worker_run(const struct config *config, const struct worker_options *options)
{
	struct worker worker;
	struct error error = { 0 };
	sigset_t set;
	log_setup((enum log_level)config_choice(config, PARAM_LOG_LEVEL),
	          (enum log_format)config_choice(config, PARAM_LOG_FORMAT));
	memory_keep_little();
	block_signals(&set);
	worker_init(&worker, config);
	struct health health = { 0 };
	enum fate fate = health_start(&health, &worker, &error); /* it is alive while it waits for the others */
	if (fate == FATE_OK)
		fate = startup(&worker, options, &error);
	if (fate == FATE_OK && !worker_stopping(&worker))
		fate = run_threads(&worker, options, &set, &health, &error);
	health_stop(&health);
	if (fate != FATE_OK && !worker_stopping(&worker))
		worker_fail(&worker, "worker", &error);
	worker_done(&worker);
	int code = atomic_load(&worker.exit_code);
	log_info("worker", "stopped");
	return code;
}
