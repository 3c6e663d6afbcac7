// links: core consumer producer
/* Sharing partitions in a group: what the group gives is only announced, and members come, go, die and sleep. */
#include "kafka_support.h"

#include "core/clock.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PARTITIONS 6

struct fixture {
	char topic[64];
	char group[64];
	struct producer *producer;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	test_make_topic(test_name(fixture->topic, "group"), PARTITIONS);
	test_name(fixture->group, "g");
	fixture->producer = test_producer(NULL);
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	producer_close(fixture->producer);
	free(fixture);
	return 0;
}

static size_t assigned(const struct reader *reader)
{
	size_t len;

	reader_assignment(reader, &len);
	return len;
}

/* Lets both poll until they hold that many partitions; a reader may be NULL. Records fail the test. */
static void await_shares(struct reader *a, size_t share_a, struct reader *b, size_t share_b)
{
	struct reader *both[] = { a, b };
	int64_t until = clock_mono_ms() + PATIENCE_MS;

	while (assigned(a) != share_a || (b && assigned(b) != share_b)) {
		assert_true(clock_mono_ms() < until);
		for (int i = 0; i < 2; i++) {
			enum reader_event event;
			struct record record;
			struct error error;

			if (!both[i])
				continue;
			assert_ok(reader_poll(both[i], 20, &event, &record, &error));
			assert_int_not_equal(event, READER_RECORD);
		}
	}
}

static void nothing_is_fetched_before_start(void **state)
{
	struct fixture *fixture = *state;
	const struct partition_at *assignment;
	struct partition_at parts[PARTITIONS];
	struct reader *reader = test_reader(fixture->group, fixture->topic);
	int64_t until;
	struct record record;
	struct error error;
	int64_t last;
	size_t len;

	for (int32_t p = 0; p < PARTITIONS; p++)
		test_write(fixture->producer, fixture->topic, p, 0, 10, 0);
	assert_ok(producer_wait(fixture->producer, PATIENCE_MS, &error));
	test_await(reader, READER_ASSIGNED, &record);
	assignment = reader_assignment(reader, &len);
	assert_int_equal(len, PARTITIONS);
	memcpy(parts, assignment, sizeof(parts));
	/* longer than a session: it stays a member, and gets no record */
	for (until = clock_mono_ms() + 7000; clock_mono_ms() < until;) {
		enum reader_event event;

		assert_ok(reader_poll(reader, 100, &event, &record, &error));
		assert_int_equal(event, READER_NOTHING);
	}
	assert_false(reader_assignment_lost(reader));
	for (size_t i = 0; i < len; i++)
		parts[i].offset = 5;
	assert_ok(reader_start(reader, parts, len, &error));
	assert_int_equal(test_drain(reader, 30, false, &last), 30);
	assert_ok(reader_start(reader, NULL, 0, &error));
	reader_report_positions(reader, parts, len);
	await_shares(reader, PARTITIONS, NULL, 0);
	reader_close(reader, 5000);
}

static void members_come_and_go(void **state)
{
	struct fixture *fixture = *state;
	struct reader *first = test_reader(fixture->group, fixture->topic);
	struct reader *second;
	struct partition_at stolen = { fixture->topic, 0, 0 };
	size_t len;
	int64_t begun;
	struct error error;

	await_shares(first, PARTITIONS, NULL, 0);
	second = test_reader(fixture->group, fixture->topic);
	await_shares(first, PARTITIONS / 2, second, PARTITIONS / 2);
	/* what is the other's cannot be started */
	if (reader_assignment(first, &len)[0].partition == 0)
		stolen.partition = PARTITIONS / 2;
	assert_int_equal(reader_start(first, &stolen, 1, &error), FATE_RETRY);
	assert_int_equal(error.code, ERR_STALE);
	/* a member that closes is missed at once, not after its session */
	begun = clock_mono_ms();
	reader_close(second, 5000);
	await_shares(first, PARTITIONS, NULL, 0);
	print_message("a closed member's partitions were given away after %lld ms\n",
	              (long long)(clock_mono_ms() - begun));
	assert_true(clock_mono_ms() - begun < 2500);
	begun = clock_mono_ms();
	reader_close(first, 5000);
	print_message("leaving a group takes %lld ms\n", (long long)(clock_mono_ms() - begun));
	assert_true(clock_mono_ms() - begun < 3000);
}

/* What is in the queue when a reader closes is dropped, not tripped over. */
static void closing_in_the_midst_of_records(void **state)
{
	struct fixture *fixture = *state;
	struct partition_at parts[PARTITIONS];
	struct record record;
	struct error error;
	int64_t last;
	size_t len;

	for (int32_t p = 0; p < PARTITIONS; p++)
		test_write(fixture->producer, fixture->topic, p, 0, 2000, 500);
	assert_ok(producer_wait(fixture->producer, PATIENCE_MS, &error));
	for (int round = 0; round < 20; round++) {
		struct reader *reader = test_reader(fixture->group, fixture->topic);
		const struct partition_at *assignment;

		test_await(reader, READER_ASSIGNED, &record);
		assignment = reader_assignment(reader, &len);
		memcpy(parts, assignment, len * sizeof(*parts));
		assert_ok(reader_start(reader, parts, len, &error));
		test_drain(reader, round * 50, false, &last);
		reader_close(reader, 5000);
	}
}

/* ---- many members, much coming and going, positions kept outside as in PostgreSQL ---- */

struct shared {
	struct fixture *fixture;
	pthread_mutex_t lock;
	int64_t next[PARTITIONS];
	atomic_bool stop;
	unsigned int seed;
	atomic_int rebalances;
};

static bool compare_and_set(struct shared *shared, int32_t partition, int64_t offset)
{
	bool mine;

	pthread_mutex_lock(&shared->lock);
	mine = shared->next[partition] == offset;
	if (mine)
		shared->next[partition] = offset + 1;
	pthread_mutex_unlock(&shared->lock);
	return mine;
}

static void start_at_positions(struct shared *shared, struct reader *reader)
{
	struct partition_at parts[PARTITIONS];
	size_t len;
	const struct partition_at *assignment = reader_assignment(reader, &len);
	struct error error;

	memcpy(parts, assignment, len * sizeof(*parts));
	pthread_mutex_lock(&shared->lock);
	for (size_t i = 0; i < len; i++)
		parts[i].offset = shared->next[parts[i].partition];
	pthread_mutex_unlock(&shared->lock);
	assert_ok(reader_start(reader, parts, len, &error));
}

static void live_for(struct shared *shared, struct reader *reader, int64_t ms)
{
	int64_t until = clock_mono_ms() + ms;

	while (clock_mono_ms() < until && !shared->stop) {
		enum reader_event event;
		struct record record;
		struct error error;

		assert_ok(reader_poll(reader, 50, &event, &record, &error));
		if (event == READER_ASSIGNED) {
			shared->rebalances++;
			start_at_positions(shared, reader);
		}
		if (event == READER_RECORD) {
			if (!compare_and_set(shared, record.at.partition, record.at.offset))
				start_at_positions(shared, reader);
			record_done(&record);
		}
	}
}

static void *member(void *argument)
{
	struct shared *shared = argument;

	while (!shared->stop) {
		struct reader *reader = test_reader(shared->fixture->group, shared->fixture->topic);
		int64_t ms;

		pthread_mutex_lock(&shared->lock);
		ms = 1000 + rand_r(&shared->seed) % 4000;
		pthread_mutex_unlock(&shared->lock);
		live_for(shared, reader, ms);
		reader_close(reader, 5000);
	}
	return NULL;
}

static bool all_read(struct shared *shared, int64_t end)
{
	bool all = true;

	pthread_mutex_lock(&shared->lock);
	for (int p = 0; p < PARTITIONS; p++)
		all = all && shared->next[p] == end;
	pthread_mutex_unlock(&shared->lock);
	return all;
}

static void nothing_is_lost_while_members_churn(void **state)
{
	struct fixture *fixture = *state;
	struct shared shared = { .fixture = fixture, .lock = PTHREAD_MUTEX_INITIALIZER, .seed = 3 };
	int64_t until = clock_mono_ms() + 60000;
	pthread_t threads[4];
	struct error error;
	int written = 0;

	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, member, &shared), 0);
	for (; written < 2000; written += 20) {
		for (int32_t p = 0; p < PARTITIONS; p++)
			test_write(fixture->producer, fixture->topic, p, written, 20, 500);
		assert_ok(producer_wait(fixture->producer, PATIENCE_MS, &error));
		producer_poll(fixture->producer, 100);
		usleep(100000);
	}
	while (!all_read(&shared, written) && clock_mono_ms() < until)
		usleep(50000);
	assert_true(all_read(&shared, written));
	shared.stop = true;
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	print_message("%d assignments\n", shared.rebalances);
}

/* ---- members that die or sleep: processes of their own ---- */

/* What this program does with the arguments "member GROUP TOPIC": a line for each event, until it is killed. */
static int run_member(const char *group, const char *topic)
{
	struct reader *reader = test_reader(group, topic);

	for (;;) {
		enum reader_event event;
		struct record record;
		struct error error;

		if (reader_poll(reader, 100, &event, &record, &error) == FATE_FATAL)
			return 1;
		if (event == READER_ASSIGNED)
			printf("assigned %zu\n", assigned(reader));
		else if (event == READER_REVOKED)
			printf("revoked\n");
		fflush(stdout);
	}
}

static pid_t spawn_member(const struct fixture *fixture, FILE **ret_lines)
{
	int ends[2];
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		execl("/proc/self/exe", "member", fixture->group, fixture->topic, (char *)NULL);
		_exit(127);
	}
	close(ends[1]);
	*ret_lines = fdopen(ends[0], "r");
	return pid;
}

static void expect_line(FILE *lines, const char *expected)
{
	char line[64] = "";

	assert_non_null(fgets(line, sizeof(line), lines));
	assert_string_equal(line, expected);
}

static void a_member_that_sleeps_comes_back(void **state)
{
	struct fixture *fixture = *state;
	struct reader *reader = test_reader(fixture->group, fixture->topic);
	FILE *lines;
	pid_t pid;
	int status;

	await_shares(reader, PARTITIONS, NULL, 0);
	pid = spawn_member(fixture, &lines);
	await_shares(reader, PARTITIONS / 2, NULL, 0);
	expect_line(lines, "assigned 3\n");
	kill(pid, SIGSTOP);
	await_shares(reader, PARTITIONS, NULL, 0); /* its session is over */
	kill(pid, SIGCONT);
	await_shares(reader, PARTITIONS / 2, NULL, 0);
	expect_line(lines, "revoked\n");
	expect_line(lines, "assigned 3\n");
	kill(pid, SIGKILL);
	waitpid(pid, &status, 0);
	fclose(lines);
	await_shares(reader, PARTITIONS, NULL, 0);
	reader_close(reader, 5000);
}

static void a_topic_that_is_missing_is_told_and_found_later(void **state)
{
	struct fixture *fixture = *state;
	char missing[64];
	struct reader *reader = test_reader(fixture->group, test_name(missing, "later"));
	enum reader_event event = READER_NOTHING;
	int64_t until = clock_mono_ms() + PATIENCE_MS;
	struct record record;
	struct error error;

	while (reader_poll(reader, 100, &event, &record, &error) == FATE_OK)
		assert_true(clock_mono_ms() < until);
	assert_int_equal(error.fate, FATE_RETRY);
	assert_non_null(strstr(error.message, missing));
	assert_non_null(strstr(error.message, "fermata topics create"));
	test_make_topic(missing, 2);
	for (until = clock_mono_ms() + PATIENCE_MS; assigned(reader) != 2;) {
		assert_true(clock_mono_ms() < until);
		assert_int_not_equal(reader_poll(reader, 100, &event, &record, &error), FATE_FATAL);
	}
	reader_close(reader, 5000);
}

int main(int argc, char **argv)
{
#define with_broker(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		with_broker(nothing_is_fetched_before_start),
		with_broker(members_come_and_go),
		with_broker(closing_in_the_midst_of_records),
		with_broker(nothing_is_lost_while_members_churn),
		with_broker(a_member_that_sleeps_comes_back),
		with_broker(a_topic_that_is_missing_is_told_and_found_later),
	};

	if (!test_broker())
		return SKIPPED;
	if (argc == 3 && !strcmp(argv[0], "member"))
		return run_member(argv[1], argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
