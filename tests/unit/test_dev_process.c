// links: cli core
/* Children of demo and dev: their output, their ends, their deadlines, and that they die with us. */
#include "cli/dev_process.h"

#include "core/clock.h"

// clang-format off
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <cmocka.h>
// clang-format on

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct place {
	char root[DEV_ROOT_MAX];
	char log[DEV_PATH_MAX];
};

static int make_place(void **state)
{
	static struct place place;
	struct error error;

	if (processes_begin(&error) != FATE_OK ||
	    files_make_root("test-dev", false, place.root, &error) != FATE_OK)
		return -1;
	files_join(place.log, place.root, "log");
	*state = &place;
	return 0;
}

static int remove_place(void **state)
{
	const struct place *place = *state;
	return files_remove(place->root) && access(place->root, F_OK) != 0 ? 0 : -1;
}

static struct process_spec shell(const struct place *place, const char *script)
{
	static const char *argv[4];

	argv[0] = "/bin/sh";
	argv[1] = "-c";
	argv[2] = script;
	argv[3] = NULL;
	return (struct process_spec){ .name = "the shell", .argv = argv, .log = place->log };
}

static void join_lines(void *context, const char *line)
{
	buffer_printf(context, "%s|", line);
}

static void assert_run(const struct place *place, const char *script, int exit_code, const char *output)
{
	struct process_spec spec = shell(place, script);
	struct process process;
	struct buffer lines;
	struct error error;

	buffer_init(&lines, 65536);
	assert_int_equal(process_run(&spec, 10000, join_lines, &lines, &process, &error), FATE_OK);
	buffer_append_byte(&lines, '\0');
	assert_false(buffer_failed(&lines));
	assert_string_equal((const char *)lines.data, output);
	assert_int_equal(process.exit_code, exit_code);
	assert_true(process.pid > 0 && !process.running);
	assert_int_equal(kill(process.pid, 0), -1);
	buffer_done(&lines);
}

static void test_output_and_exit_codes(void **state)
{
	const struct place *place = *state;

	assert_run(place, "echo one; echo two >&2; printf three", 0, "one|two|three|");
	assert_run(place, "echo; exit 3", 3, "|");
	assert_run(place, "kill -9 $$", 128 + SIGKILL, "");
	assert_run(place, "read line || echo nothing to read", 0, "nothing to read|");
}

static void test_a_child_has_signals_as_programs_expect_them(void **state)
{
	/* Ours are blocked; what is ignored stays so, as with nohup. */
	assert_run(*state, "grep ^SigBlk /proc/self/status | cut -f2 | tr -d 0", 0, "|");
}

static void test_a_program_that_is_not_there(void **state)
{
	const char *argv[] = { "/nowhere/program", NULL };
	const struct place *place = *state;
	struct process_spec spec = { .name = "nothing", .argv = argv, .log = place->log };
	struct process process;
	struct error error;

	assert_int_equal(process_start(&process, &spec, &error), FATE_FATAL);
	assert_string_equal(error.native, "ENOENT");
	assert_non_null(strstr(error.message, "/nowhere/program"));
	assert_true(process_ended(&process));
	assert_true(process_stop(&process, 1000));
}

static void test_a_deadline_passes(void **state)
{
	struct process_spec spec = shell(*state, "echo begun; exec sleep 60");
	struct process process;
	struct error error;
	int64_t start = clock_mono_ms();

	assert_int_equal(process_run(&spec, 300, NULL, NULL, &process, &error), FATE_RETRY);
	assert_false(process.running);
	assert_int_equal(process.exit_code, 128 + SIGTERM);
	assert_true(clock_mono_ms() - start < 10000);
}

static void test_who_does_not_listen_is_killed(void **state)
{
	struct process_spec spec = shell(*state, "trap '' TERM; echo deaf; while :; do sleep 0.05; done");
	struct process process;
	struct error error;

	assert_int_equal(process_start(&process, &spec, &error), FATE_OK);
	for (int i = 0; i < 20; i++)
		assert_int_equal(process_pause(20, &error), FATE_OK);
	assert_false(process_stop(&process, 200));
	assert_int_equal(process.exit_code, 128 + SIGKILL);
}

static void read_pid(void *context, const char *line)
{
	*(long *)context = strtol(line, NULL, 10);
}

/* A process that starts a child as we do and is then killed: the child must not outlive it. */
static void test_children_die_with_us(void **state)
{
	const struct place *place = *state;
	struct process process;
	struct error error;
	long pid = 0;

	pid_t parent = fork();
	assert_true(parent >= 0);
	if (parent == 0) {
		struct process_spec spec = shell(place, "echo $$; exec sleep 60");
		if (process_start(&process, &spec, &error) != FATE_OK)
			_exit(1);
		for (;;)
			pause();
	}
	for (int i = 0; i < 500 && pid <= 0; i++) {
		files_tail(place->log, 1, read_pid, &pid);
		assert_int_equal(process_pause(10, &error), FATE_OK);
	}
	assert_true(pid > 0 && kill((pid_t)pid, 0) == 0);
	kill(parent, SIGKILL);
	assert_int_equal(waitpid(parent, NULL, 0), parent);
	char path[64], state_of[256] = "";
	snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	for (int i = 0; i < 500; i++) {
		/* A zombie that nobody fetched is dead enough. */
		FILE *file = fopen(path, "r");
		if (file == NULL)
			return;
		bool zombie = fgets(state_of, sizeof(state_of), file) != NULL && strstr(state_of, ") Z ") != NULL;
		fclose(file);
		if (zombie)
			return;
		assert_int_equal(process_pause(10, &error), FATE_OK);
	}
	fail_msg("the child outlived its parent");
}

static void test_being_asked_to_end(void **state)
{
	struct process_spec spec = shell(*state, "exec sleep 60");
	struct process process;
	struct error error;

	assert_int_equal(processes_signal(), 0);
	kill(getpid(), SIGTERM); /* blocked: it waits until we look */
	assert_int_equal(process_run(&spec, 10000, NULL, NULL, &process, &error), FATE_RETRY);
	assert_int_equal(processes_signal(), SIGTERM);
	assert_false(process.running);
	assert_int_equal(process_pause(10000, &error), FATE_RETRY);
	assert_non_null(strstr(error.message, "SIGTERM"));
	assert_int_equal(processes_begin(&error), FATE_OK);
	assert_int_equal(processes_signal(), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_place, remove_place)
	const struct CMUnitTest tests[] = {
		TEST(test_output_and_exit_codes),
		TEST(test_a_child_has_signals_as_programs_expect_them),
		TEST(test_a_program_that_is_not_there),
		TEST(test_a_deadline_passes),
		TEST(test_who_does_not_listen_is_killed),
		TEST(test_children_die_with_us),
		TEST(test_being_asked_to_end),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
