// links: vault core
/* A keyring from a command: what it may write, how it may end, and that nothing of it is left running. */
#include "test_vault.h"

#include <errno.h>
#include <signal.h>

static enum fate run_within(const char *script, int64_t timeout_ms, char *text, size_t *ret_len,
                            struct error *error)
{
	const char *argv[] = { "sh", "-c", script, NULL };

	return keyring_read_command(argv, timeout_ms, (uint8_t *)text, KEYRING_TEXT_MAX, ret_len, error);
}

static void assert_fate(const char *script, enum fate fate, const char *expected)
{
	static char text[KEYRING_TEXT_MAX];
	size_t len = 0;
	struct error error = { 0 };

	assert_int_equal(run_within(script, 5000, text, &len, &error), fate);
	if (expected != NULL && strstr(error.message, expected) == NULL)
		fail_msg("'%s' is not in: %s", expected, error.message);
	assert_null(strstr(error.message, "secret"));
}

static void test_output(void **state)
{
	static char text[KEYRING_TEXT_MAX];
	size_t len = 0;
	struct error error;

	(void)state;
	assert_int_equal(run_within("printf one; printf two >&2; cat; printf three", 5000, text, &len, &error),
	                 FATE_OK);
	assert_int_equal(len, 8);
	assert_memory_equal(text, "onethree", 8); /* stdin was empty, stderr is not part of it */
	assert_int_equal(run_within("head -c 65536 /dev/zero", 5000, text, &len, &error), FATE_OK);
	assert_int_equal(len, KEYRING_TEXT_MAX);
}

static void test_ends(void **state)
{
	(void)state;
	assert_fate("echo secret; exit 3", FATE_RETRY, "exit code 3");
	assert_fate("echo secret >&2; exit 1", FATE_RETRY, "exit code 1");
	assert_fate("kill -9 $$", FATE_RETRY, "signal 9");
	assert_fate("exec >&-; exit 0", FATE_OK, NULL);
	assert_fate("head -c 65537 /dev/zero", FATE_FATAL, "more than 65536");
	assert_fate("yes secret", FATE_FATAL, "more than 65536");
}

/* valgrind runs posix_spawn as a plain fork, and then all that is seen of a failed exec is exit code 127. */
static void assert_no_start(const char *path, const char *native)
{
	const char *argv[] = { path, NULL };
	uint8_t text[64];
	size_t len;
	struct error error;

	enum fate fate = keyring_read_command(argv, 5000, text, sizeof(text), &len, &error);
	if (fate == FATE_RETRY && strstr(error.message, "exit code 127") != NULL)
		return;
	assert_int_equal(fate, FATE_FATAL);
	assert_int_equal(error.code, ERR_USAGE);
	assert_string_equal(error.native, native);
}

static void test_cannot_start(void **state)
{
	(void)state;
	assert_no_start("/nowhere/kms", "ENOENT");
	assert_no_start("/tmp", "EACCES");
}

/* No shell looks at the words. */
static void test_no_shell(void **state)
{
	const char *argv[] = { "printf", "%s", "$(echo no); `no` 'x", NULL };
	uint8_t text[64];
	size_t len;
	struct error error;

	(void)state;
	assert_int_equal(keyring_read_command(argv, 5000, text, sizeof(text), &len, &error), FATE_OK);
	assert_true(view_equal_text((struct view){ text, len }, argv[2]));
}

/* The pid of the script's child, which it wrote to path; waits until it is there. */
static pid_t pid_in(const char *path)
{
	int pid = 0;

	for (int64_t end = clock_mono_ms() + 5000; pid == 0 && clock_mono_ms() < end; usleep(1000)) {
		FILE *file = fopen(path, "r");
		if (file != NULL && fscanf(file, "%d", &pid) != 1)
			pid = 0;
		if (file != NULL)
			fclose(file);
	}
	assert_true(pid > 0);
	return (pid_t)pid;
}

/* Dead, or a zombie that whoever took over from its parent has not looked at yet. */
static bool is_gone(pid_t pid)
{
	char path[64], state = 'Z';

	for (int64_t end = clock_mono_ms() + 5000; clock_mono_ms() < end; usleep(1000)) {
		if (kill(pid, 0) != 0 && errno == ESRCH)
			return true;
		snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
		FILE *file = fopen(path, "r");
		if (file == NULL)
			return true;
		int got = fscanf(file, "%*d %*s %c", &state);
		fclose(file);
		if (got == 1 && state == 'Z')
			return true;
	}
	return false;
}

/* The script runs in a directory of its own, and writes the pid of its child into keyring. */
static void assert_too_slow(const char *body)
{
	struct test_directory directory = test_directory_make();
	static char text[KEYRING_TEXT_MAX];
	char script[256];
	size_t len;
	struct error error;

	snprintf(script, sizeof(script), "cd %s; %s", directory.path, body);
	int64_t start = clock_mono_ms();
	assert_int_equal(run_within(script, 300, text, &len, &error), FATE_RETRY);
	int64_t took = clock_mono_ms() - start;
	assert_int_equal(error.code, ERR_KEY);
	assert_non_null(strstr(error.message, "did not end in time"));
	assert_true(took >= 300 && took < 5000);
	assert_true(is_gone(pid_in(directory.keyring)));
	test_directory_remove(&directory);
}

static void test_too_slow(void **state)
{
	(void)state;
	assert_too_slow("sleep 60 & echo $! >keyring; wait");           /* silent */
	assert_too_slow("sleep 60 & echo $! >keyring; exec >&-; wait"); /* closed its output, goes on */
	assert_too_slow("trap '' TERM HUP; sleep 60 & echo $! >keyring; while :; do echo; sleep 0.02; done");
}

/* A command that leaves a child with the pipe behind has not ended its output. */
static void test_left_behind(void **state)
{
	(void)state;
	assert_too_slow("sleep 60 & echo $! >keyring; exit 0");
}

/* Signals that the worker blocks or ignores are none of the command's business. */
static void test_signals(void **state)
{
	sigset_t all, before;

	(void)state;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	signal(SIGPIPE, SIG_IGN);
	assert_fate("kill -TERM $$; exit 0", FATE_RETRY, "signal 15");
	assert_fate("kill -PIPE $$; exit 0", FATE_RETRY, "signal 13");
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &before, NULL);
}

static void test_descriptors(void **state)
{
	(void)state;
	int before = dup(0);
	close(before);
	assert_fate("exit 0", FATE_OK, NULL);
	assert_fate("exit 1", FATE_RETRY, NULL);
	int after = dup(0);
	close(after);
	assert_int_equal(before, after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_output),       cmocka_unit_test(test_ends),
		cmocka_unit_test(test_cannot_start), cmocka_unit_test(test_no_shell),
		cmocka_unit_test(test_too_slow),     cmocka_unit_test(test_left_behind),
		cmocka_unit_test(test_signals),      cmocka_unit_test(test_descriptors),
	};

	return cmocka_run_group_tests(tests, test_start, NULL);
}
