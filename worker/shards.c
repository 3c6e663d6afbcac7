#include "worker/relay.h"
#include "worker/rivals.h"

#include "core/failpoint.h"
#include "core/log.h"
#include "core/metrics.h"

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

/*
 * The relays of this worker. A consumer group on the resumes topics says which shards are ours; nothing
 * is ever fetched through it. While the group is being shared out anew the relays go on: should one have
 * lost its shard, the new owner's R1 fences it, and it waits until the group has spoken.
 */

#define POLL_MS  100
#define CLOSE_MS 3000

#define FRESH_BYTES_MAX (256 * 1024) /* of a state, before it is sealed */

struct shards {
	struct worker *worker;
	pthread_mutex_t mutex; /* of the list */
	struct relay **relays;
	size_t len;
	bool assigned; /* the group has spoken at least once, and every shard of ours has its relay */
	bool again;    /* an assignment could not be taken up whole: it is tried again */
};

static struct shards *shards_of(struct worker *worker)
{
	return worker->shards;
}

static bool is_of(const struct relay *relay, const struct checkpoint_write *write)
{
	const struct checkpoint *row = write->checkpoint;
	return (write->outbox || write->gate_event) && row->resumes_partition == relay->partition &&
	       view_equal_text(row->resumes_topic, relay->topic);
}

/* A relay that may have lost its shard, or is not past its R2, is not counted upon. */
static bool is_held(const struct shards *shards, const struct checkpoint_write *write)
{
	for (size_t i = 0; i < shards->len; i++)
		if (is_of(shards->relays[i], write))
			return atomic_load(&shards->relays[i]->held) && atomic_load(&shards->relays[i]->ready);
	return false;
}

uint64_t shards_elsewhere(struct worker *worker, const struct batch_write *batch)
{
	struct shards *shards = shards_of(worker);
	uint64_t elsewhere = 0;
	if (shards == NULL)
		return batch->notify;
	pthread_mutex_lock(&shards->mutex);
	for (size_t i = 0; i < batch->checkpoints_len; i++) {
		const struct checkpoint_write *write = &batch->checkpoints[i];
		const struct checkpoint *row = write->checkpoint;
		if ((write->outbox || write->gate_event) && !is_held(shards, write))
			elsewhere |= store_shard_bit(row->resumes_topic, row->resumes_partition);
	}
	pthread_mutex_unlock(&shards->mutex);
	return elsewhere;
}

static void wake(struct relay *relay, bool urgent)
{
	uint64_t one = 1;
	if (urgent)
		atomic_store(&relay->urgent, true);
	if (write(relay->wake_fd, &one, sizeof(one)) < 0)
		log_debug("shards", "a relay has been woken often enough");
}

/* What is large is left to a relay that knows how much there is. */
static void note_decided(struct relay *relay, const struct checkpoint *row)
{
	const struct fresh fresh = { row->id, row->appended_at };
	if (row->sealed.plain_len <= FRESH_BYTES_MAX)
		tray_note(&relay->tray, &fresh);
}

static void wake_for(struct relay *relay, const struct batch_write *batch)
{
	bool any = false, urgent = false;
	for (size_t i = 0; i < batch->checkpoints_len; i++) {
		const struct checkpoint_write *write = &batch->checkpoints[i];
		if (!is_of(relay, write))
			continue;
		any = true;
		urgent = urgent || write->outbox;
		if (write->outbox)
			note_decided(relay, write->checkpoint);
	}
	if (any)
		wake(relay, urgent);
}

void shards_wake(struct worker *worker, const struct batch_write *batch)
{
	struct shards *shards = shards_of(worker);
	if (shards == NULL)
		return;
	pthread_mutex_lock(&shards->mutex);
	for (size_t i = 0; i < shards->len; i++) {
		if (batch == NULL)
			wake(shards->relays[i], true);
		else
			wake_for(shards->relays[i], batch);
	}
	pthread_mutex_unlock(&shards->mutex);
}

void shards_hand_over(struct worker *worker, const struct checkpoint *row, const struct tray_event *event)
{
	struct shards *shards = shards_of(worker);
	const struct checkpoint_write write = { .checkpoint = row, .gate_event = true };
	pthread_mutex_lock(&shards->mutex);
	for (size_t i = 0; i < shards->len; i++)
		if (is_of(shards->relays[i], &write))
			tray_put(&shards->relays[i]->tray, event);
	pthread_mutex_unlock(&shards->mutex);
}

void shards_forget(struct worker *worker)
{
	struct shards *shards = shards_of(worker);
	if (shards == NULL)
		return;
	pthread_mutex_lock(&shards->mutex);
	for (size_t i = 0; i < shards->len; i++)
		tray_clear(&shards->relays[i]->tray);
	pthread_mutex_unlock(&shards->mutex);
}

enum fate shards_backlog(struct worker *worker, struct store *store, int64_t *ret_rows, struct error *error)
{
	struct shards *shards = shards_of(worker);
	enum fate fate = FATE_OK;
	*ret_rows = 0;
	pthread_mutex_lock(&shards->mutex);
	if (!shards->assigned)
		*ret_rows = -1;
	for (size_t i = 0; i < shards->len && fate == FATE_OK && *ret_rows >= 0; i++) {
		const struct relay *relay = shards->relays[i];
		int64_t rows = 0;
		if (!atomic_load(&relay->ready))
			*ret_rows = -1;
		else
			fate = store_outbox_count(store, relay->topic, relay->partition, &rows, error);
		if (*ret_rows >= 0)
			*ret_rows += rows;
	}
	pthread_mutex_unlock(&shards->mutex);
	return fate;
}

/* ---- starting and ending relays ---- */

static void relay_free(struct relay *relay)
{
	if (relay == NULL)
		return;
	if (relay->wake_fd >= 0)
		close(relay->wake_fd);
	tray_done(&relay->tray);
	free(relay);
}

static enum fate relay_start(struct worker *worker, const struct partition_at *place,
                             struct relay **ret_relay, struct error *error)
{
	struct relay *relay = calloc(1, sizeof(*relay));
	if (relay == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a relay");
	relay_init(relay, worker, place);
	tray_init(&relay->tray, (size_t)config_number(worker->config, PARAM_WORKER_RELAY_BYTES) / 2);
	relay->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (relay->wake_fd < 0 || pthread_create(&relay->thread, NULL, relay_thread, relay) != 0) {
		relay_free(relay);
		return error_set(error, FATE_RETRY, ERR_SYSTEM, "no thread for the relay of %s [%" PRId32 "]",
		                 place->topic, place->partition);
	}
	*ret_relay = relay;
	return FATE_OK;
}

static void tell_end(struct relay *relay)
{
	atomic_store(&relay->ended, true);
	wake(relay, false);
}

static void join(struct relay *relay)
{
	pthread_join(relay->thread, NULL);
	relay_free(relay);
}

static bool is_place(const struct relay *relay, const struct partition_at *place)
{
	return relay->partition == place->partition && strcmp(relay->topic, place->topic) == 0;
}

static bool among(const struct relay *relay, const struct partition_at *places, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (is_place(relay, &places[i]))
			return true;
	return false;
}

/* Takes those that are not among places off the list; the caller joins them without the mutex. */
static size_t split_off(struct shards *shards, const struct partition_at *places, size_t len,
                        struct relay **ret_ended)
{
	size_t kept = 0, ended = 0;
	pthread_mutex_lock(&shards->mutex);
	for (size_t i = 0; i < shards->len; i++) {
		struct relay *relay = shards->relays[i];
		if (among(relay, places, len)) {
			atomic_store(&relay->held, true);
			atomic_fetch_add(&relay->spoken, 1);
			shards->relays[kept++] = relay;
		} else {
			tell_end(relay);
			ret_ended[ended++] = relay;
		}
	}
	shards->len = kept;
	pthread_mutex_unlock(&shards->mutex);
	return ended;
}

static enum fate end_others(struct shards *shards, const struct partition_at *places, size_t len,
                            struct error *error)
{
	struct relay **ended = calloc(shards->len + 1, sizeof(*ended));
	if (ended == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for the list of relays");
	size_t ended_len = split_off(shards, places, len, ended);
	for (size_t i = 0; i < ended_len; i++)
		join(ended[i]);
	free(ended);
	return FATE_OK;
}

static enum fate start_new(struct shards *shards, const struct partition_at *places, size_t len,
                           struct error *error)
{
	size_t before = shards->len;
	struct relay **grown = realloc(shards->relays, (len + 1) * sizeof(*grown));
	if (grown == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for the list of relays");
	shards->relays = grown;
	for (size_t i = 0; i < len; i++) {
		bool running = false;
		for (size_t j = 0; j < before && !running; j++)
			running = is_place(shards->relays[j], &places[i]);
		if (running)
			continue;
		enum fate fate = relay_start(shards->worker, &places[i], &shards->relays[shards->len], error);
		if (fate != FATE_OK)
			return fate;
		shards->len++;
	}
	return FATE_OK;
}

static enum fate take_assignment(struct shards *shards, struct reader *reader, struct error *error)
{
	size_t len;
	const struct partition_at *places = reader_assignment(reader, &len);
	shards->again = true;
	enum fate fate = reader_start(reader, NULL, 0, error);
	if (fate == FATE_OK)
		fate = failpoint(FAILPOINT_SHARDS_ASSIGNED, error);
	if (fate == FATE_OK)
		fate = end_others(shards, places, len, error);
	if (fate == FATE_OK)
		fate = failpoint(FAILPOINT_SHARDS_ENDED, error);
	if (fate != FATE_OK)
		return fate;
	pthread_mutex_lock(&shards->mutex);
	fate = start_new(shards, places, len, error);
	shards->assigned = fate == FATE_OK;
	pthread_mutex_unlock(&shards->mutex);
	shards->again = fate != FATE_OK;
	metrics_set(METRIC_RELAYS, (int64_t)shards->len);
	log_info("shards", "the group gave this worker %zu shards", len);
	return fate;
}

/* Until the group speaks again, a relay that loses its term does not begin another. */
static void doubt_all(struct shards *shards)
{
	pthread_mutex_lock(&shards->mutex);
	for (size_t i = 0; i < shards->len; i++)
		atomic_store(&shards->relays[i]->held, false);
	pthread_mutex_unlock(&shards->mutex);
}

/* ---- the thread ---- */

static enum fate open_group(struct worker *worker, struct reader **ret_reader, struct error *error)
{
	char group[256], name[sizeof(RIVALS_CLIENT) + STORE_MARK_CAP];
	rivals_group(worker->config, group, sizeof(group));
	snprintf(name, sizeof(name), "%s%s", RIVALS_CLIENT, worker->mark);
	const char **topics = calloc(worker->topics_len, sizeof(*topics));
	if (topics == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the list of topics");
	for (size_t i = 0; i < worker->topics_len; i++)
		topics[i] = (const char *)worker->topics[i].topic.data; /* arena_copy ends them with a NUL */
	struct reader_settings settings = {
		.client_id = name,
		.group = group,
		.topics = topics,
		.topics_len = worker->topics_len,
		.prefetch_bytes = (size_t)1 << 20,
	};
	settings.properties = config_kafka(worker->config, KAFKA_CONSUMER, &settings.properties_len);
	enum fate fate = reader_open(ret_reader, &settings, error);
	free(topics);
	return fate;
}

static enum fate step(struct shards *shards, struct reader *reader, struct error *error)
{
	enum reader_event event;
	struct record record = { 0 };
	enum fate fate = reader_poll(reader, POLL_MS, &event, &record, error);
	if (fate == FATE_RETRY) {
		log_error(LOG_LEVEL_DEBUG, "shards", error);
		return FATE_OK;
	}
	if (fate != FATE_OK)
		return fate;
	if (event == READER_RECORD)
		record_done(&record);
	if (event == READER_REVOKED) {
		shards->again = false;
		doubt_all(shards);
	}
	return event == READER_ASSIGNED || shards->again ? take_assignment(shards, reader, error) : FATE_OK;
}

void *shards_thread(void *argument)
{
	struct worker *worker = argument;
	struct shards *shards = shards_of(worker);
	struct reader *reader = NULL;
	struct error error = { 0 };
	enum fate fate = open_group(worker, &reader, &error);
	while (fate == FATE_OK && !worker_stopping(worker)) {
		fate = step(shards, reader, &error);
		if (fate == FATE_RETRY) {
			log_error(LOG_LEVEL_WARN, "shards", &error);
			(void)worker_wait(worker, 1000);
			fate = FATE_OK;
		}
	}
	if (fate != FATE_OK)
		worker_fail(worker, "shards", &error);
	if (end_others(shards, NULL, 0, &error) != FATE_OK)
		log_error(LOG_LEVEL_WARN, "shards", &error);
	reader_close(reader, CLOSE_MS);
	return NULL;
}

enum fate shards_new(struct worker *worker, struct error *error)
{
	struct shards *shards = calloc(1, sizeof(*shards));
	if (shards == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the shards");
	shards->worker = worker;
	pthread_mutex_init(&shards->mutex, NULL);
	worker->shards = shards;
	return FATE_OK;
}

void shards_free(struct worker *worker)
{
	struct shards *shards = shards_of(worker);
	if (shards == NULL)
		return;
	pthread_mutex_destroy(&shards->mutex);
	free(shards->relays);
	free(shards);
	worker->shards = NULL;
}
