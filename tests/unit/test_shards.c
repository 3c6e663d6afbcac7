// links: worker schemas vault config store consumer producer core
/* Whose relay is woken by a batch: that of its shards, and only that; of what no relay of this process has, other
 * processes are told. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "worker/relay.h"
#include "worker/rivals.h"

#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SHARDS 3

static struct worker worker;
static struct config *config;
static struct resumes_topic topics[] = { { .partitions = SHARDS } };
static struct partition_at places[SHARDS] = { { "resumes", 0, 0 }, { "resumes", 1, 0 }, { "more", 1, 0 } };
static struct relay *relays[SHARDS];
static pthread_t thread;
static _Atomic bool stopping;
static _Atomic int running;

/* ---- in the place of the group, and of what a relay does ---- */

enum fate reader_open(struct reader **ret_reader, const struct reader_settings *settings, struct error *error)
{
	(void)settings;
	(void)error;
	*ret_reader = NULL;
	return FATE_OK;
}

void reader_close(struct reader *reader, int64_t deadline_ms)
{
	(void)reader;
	(void)deadline_ms;
}

enum fate reader_poll(struct reader *reader, int timeout_ms, enum reader_event *ret_event,
                      struct record *ret_record, struct error *error)
{
	static bool told;

	(void)reader;
	(void)ret_record;
	(void)error;
	*ret_event = told ? READER_NOTHING : READER_ASSIGNED;
	if (told)
		poll(NULL, 0, timeout_ms);
	told = true;
	return FATE_OK;
}

const struct partition_at *reader_assignment(const struct reader *reader, size_t *ret_len)
{
	(void)reader;
	*ret_len = SHARDS;
	return places;
}

enum fate reader_start(struct reader *reader, const struct partition_at *parts, size_t len,
                       struct error *error)
{
	(void)reader;
	(void)parts;
	(void)len;
	(void)error;
	return FATE_OK;
}

void record_done(struct record *record)
{
	(void)record;
}

void rivals_group(const struct config *of, char *ret_group, size_t cap)
{
	(void)of;
	snprintf(ret_group, cap, "relays");
}

void relay_init(struct relay *relay, struct worker *of, const struct partition_at *place)
{
	relay->worker = of;
	relay->partition = place->partition;
	snprintf(relay->topic, sizeof(relay->topic), "%s", place->topic);
	atomic_store(&relay->held, true);
	atomic_store(&relay->ready, true);
}

void *relay_thread(void *argument)
{
	struct relay *relay = argument;

	for (size_t i = 0; i < SHARDS; i++)
		if (relay->partition == places[i].partition && strcmp(relay->topic, places[i].topic) == 0)
			relays[i] = relay;
	atomic_fetch_add(&running, 1);
	while (!atomic_load(&relay->ended))
		poll(NULL, 0, 1);
	return NULL;
}

bool worker_stopping(const struct worker *asked)
{
	(void)asked;
	return atomic_load(&stopping);
}

bool worker_wait(struct worker *asked, int64_t ms)
{
	(void)ms;
	return worker_stopping(asked);
}

void worker_fail(struct worker *asked, const char *room, const struct error *error)
{
	(void)asked;
	fail_msg("%s: %s", room, error->message);
}

/* ---- the cases ---- */

static int setup(void **state)
{
	struct config_request request = { 0 };
	struct error error;

	(void)state;
	if (config_load(&config, &request, &error) != FATE_OK)
		return -1;
	topics[0].topic = view_of("resumes");
	worker = (struct worker){ .config = config, .topics = topics, .topics_len = 1 };
	if (shards_new(&worker, &error) != FATE_OK || pthread_create(&thread, NULL, shards_thread, &worker) != 0)
		return -1;
	while (atomic_load(&running) < SHARDS)
		poll(NULL, 0, 1);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	atomic_store(&stopping, true);
	pthread_join(thread, NULL);
	shards_free(&worker);
	config_free(config);
	return 0;
}

static struct checkpoint row_of(const char *topic, int32_t partition)
{
	return (
		struct checkpoint){ .filled = true, .resumes_topic = view_of(topic), .resumes_partition = partition };
}

/* Was it, since this was asked last? */
static bool woken(size_t i, bool *ret_urgent)
{
	uint64_t count;

	*ret_urgent = atomic_exchange(&relays[i]->urgent, false);
	return read(relays[i]->wake_fd, &count, sizeof(count)) == sizeof(count);
}

static void check_woken(size_t i, bool expected, bool expected_urgent)
{
	bool urgent;

	assert_int_equal(woken(i, &urgent), expected);
	assert_int_equal(urgent, expected_urgent);
}

static void only_the_relays_of_a_batch_are_woken(void **state)
{
	(void)state;
	const struct checkpoint one = row_of("resumes", 1), other = row_of("more", 1);
	struct checkpoint_write writes[] = { { .checkpoint = &one, .gate_event = true },
		                                 { .checkpoint = &one, .outbox = true, .gate_event = true },
		                                 { .checkpoint = &other, .gate_event = true } };
	struct batch_write batch = { .checkpoints = writes, .checkpoints_len = 3 };

	shards_wake(&worker, &batch);
	check_woken(0, false, false);
	check_woken(1, true, true);
	check_woken(2, true, false); /* a gate event alone is not urgent */
	writes[0].gate_event = writes[1].gate_event = writes[1].outbox = false; /* nothing for a relay */
	shards_wake(&worker, &batch);
	check_woken(1, false, false);
	check_woken(2, true, false);
	shards_wake(&worker, NULL);
	for (size_t i = 0; i < SHARDS; i++)
		check_woken(i, true, true);
}

static void others_are_told_of_what_is_not_held_here(void **state)
{
	(void)state;
	const struct checkpoint here = row_of("resumes", 1), there = row_of("resumes", 2);
	struct checkpoint_write writes[] = { { .checkpoint = &here, .outbox = true },
		                                 { .checkpoint = &there, .gate_event = true } };
	struct batch_write batch = { .checkpoints = writes, .checkpoints_len = 2 };
	uint64_t far = store_shard_bit(there.resumes_topic, 2), near = store_shard_bit(here.resumes_topic, 1);

	assert_int_equal(shards_elsewhere(&worker, &batch), far);
	writes[1].gate_event = false;
	assert_int_equal(shards_elsewhere(&worker, &batch), 0);
	atomic_store(&relays[1]->held, false); /* the group may be giving it to another */
	assert_int_equal(shards_elsewhere(&worker, &batch), near);
	atomic_store(&relays[1]->held, true);
	atomic_store(&relays[1]->ready, false); /* it may be fenced by another */
	assert_int_equal(shards_elsewhere(&worker, &batch), near);
	atomic_store(&relays[1]->ready, true);
	assert_int_equal(shards_elsewhere(&worker, &batch), 0);
}

static void a_gate_event_lies_with_the_relay_of_its_shard_until_it_is_forgotten(void **state)
{
	(void)state;
	const struct checkpoint here = row_of("resumes", 1), nowhere = row_of("resumes", 2);
	const struct tray_event event = { .id = { { 7 } }, .version = 5, .value = VIEW_LITERAL("event") };

	shards_hand_over(&worker, &nowhere, &event);
	for (size_t i = 0; i < SHARDS; i++)
		assert_null(tray_take(&relays[i]->tray, &event.id, 5));
	shards_hand_over(&worker, &here, &event);
	assert_null(tray_take(&relays[0]->tray, &event.id, 5));
	assert_null(tray_take(&relays[2]->tray, &event.id, 5));
	assert_non_null(tray_take(&relays[1]->tray, &event.id, 5));
	shards_hand_over(&worker, &here, &event);
	shards_forget(&worker);
	assert_null(tray_take(&relays[1]->tray, &event.id, 5));
}

static void without_relays_everybody_is_told(void **state)
{
	(void)state;
	struct worker rebuilding = { .config = config };
	struct batch_write batch = { .notify = STORE_ALL_SHARDS };

	assert_true(shards_elsewhere(&rebuilding, &batch) == STORE_ALL_SHARDS);
	shards_wake(&rebuilding, &batch);
	shards_forget(&rebuilding);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_the_relays_of_a_batch_are_woken),
		cmocka_unit_test(others_are_told_of_what_is_not_held_here),
		cmocka_unit_test(a_gate_event_lies_with_the_relay_of_its_shard_until_it_is_forgotten),
		cmocka_unit_test(without_relays_everybody_is_told),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
