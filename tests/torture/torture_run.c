/*
 * torture_run.c - stands in for cmocka: the tests are those of tests/unit, unchanged. Each test is run once
 * with every allocation counted, then again and again in a process of its own, each time with another
 * allocation failing. What was seen goes to TORTURE_REPORT, for tests/torture/run to judge.
 */
#include "schemas/codec.h"
#include "tests/torture/torture.h"

#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <dlfcn.h>

int __lsan_do_recoverable_leak_check(void);
const char *__asan_default_options(void);

#define SCRUBBED      (48 * 1024) /* bytes of stack below a failed assertion that are cleared */
#define WAYS_MOST     (1 << 16)
#define SECONDS_LEAST 20 /* a run that takes longer, and 20 times as long as without a fault, hangs */

/* How a run of a test ended. A crash that AddressSanitizer reports is 66, as ASAN_OPTIONS says. */
enum ending {
	ENDED_WELL = 0,
	ENDED_NOTICED = 10,  /* an assertion met an error that says what was missing, or a NULL or false */
	ENDED_MISNAMED = 11, /* an assertion met an error that says something else */
	ENDED_SILENT = 12,   /* an assertion met a wrong value, and nothing had said an error */
	ENDED_LEAKING = 13,  /* what nothing points to any more was left behind */
	ENDED_SKIPPED = 14,
	ENDED_EARLY = 15, /* an assertion failed before any allocation was made to */
};

struct group {
	const struct CMUnitTest *test;
	CMFixtureFunction setup;
	CMFixtureFunction teardown;
};

static struct torture_seen *seen;
static enum torture_mode mode;
static FILE *report;
static int said = -1; /* what a child writes to its standard outputs */

const char *__asan_default_options(void)
{
	return "exitcode=66:handle_abort=1:leak_check_at_exit=0:detect_leaks=1:quarantine_size_mb=4:"
		   "allocator_may_return_null=1:malloc_context_size=20";
}

/* The last error that was filled after the fault. */
static void note_error(enum error_code code, const char *fmt, va_list args)
{
	if (seen == NULL || seen->failed == 0)
		return;
	seen->errors++;
	seen->code = code;
	vsnprintf(seen->message, sizeof(seen->message), fmt, args);
}

/* Linked where the test knows of it. */
extern __typeof__(codec_new) codec_new __attribute__((weak));
extern __typeof__(codec_free) codec_free __attribute__((weak));

/* The linker sends calls of X to __wrap_X (-Wl,--wrap); the real ones take no va_list. */
enum fate __real_error_set(struct error *error, enum fate fate, enum error_code code, const char *fmt, ...);
enum fate __real_error_set_native(struct error *error, enum fate fate, enum error_code code,
                                  const char *native, const char *fmt, ...);
enum fate __real_error_set_errno(struct error *error, enum fate fate, int errnum, const char *fmt, ...);
enum fate __wrap_error_set(struct error *error, enum fate fate, enum error_code code, const char *fmt, ...);
enum fate __wrap_error_set_native(struct error *error, enum fate fate, enum error_code code,
                                  const char *native, const char *fmt, ...);
enum fate __wrap_error_set_errno(struct error *error, enum fate fate, int errnum, const char *fmt, ...);

enum fate __wrap_error_set(struct error *error, enum fate fate, enum error_code code, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	note_error(code, fmt, args);
	va_end(args);
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return __real_error_set(error, fate, code, "%s", text);
}

enum fate __wrap_error_set_native(struct error *error, enum fate fate, enum error_code code,
                                  const char *native, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	note_error(code, fmt, args);
	va_end(args);
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return __real_error_set_native(error, fate, code, native, "%s", text);
}

enum fate __wrap_error_set_errno(struct error *error, enum fate fate, int errnum, const char *fmt, ...)
{
	char text[1024];
	va_list args;

	va_start(args, fmt);
	note_error(ERR_SYSTEM, fmt, args);
	va_end(args);
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return __real_error_set_errno(error, fate, errnum, "%s", text);
}

/* What returned calls left below the stack pointer would hide a leak. */
static __attribute__((noinline)) void scrub(void)
{
	volatile char old[SCRUBBED];

	for (size_t i = 0; i < sizeof(old); i++)
		old[i] = 0;
}

static bool leaks(void)
{
	scrub();
	return __lsan_do_recoverable_leak_check() != 0;
}

/* An assertion failed. The stack is still whole: what the test holds is held, the rest is a leak. */
static _Noreturn void ended(bool by_value, const char *file, int line, const char *what)
{
	enum ending how = ENDED_NOTICED;

	torture_disarm();
	dprintf(STDERR_FILENO, "assertion %s:%d: %s\n", file, line, what);
	if (seen->errors > 0)
		dprintf(STDERR_FILENO, "error %s: %s\n", error_code_name((enum error_code)seen->code), seen->message);
	if (seen->failed == 0)
		how = ENDED_EARLY;
	else if (seen->errors > 0 && seen->code != ERR_MEMORY && seen->code != ERR_SYSTEM)
		how = ENDED_MISNAMED;
	else if (seen->errors == 0 && by_value)
		how = ENDED_SILENT;
	_exit(seen->failed > 0 && leaks() ? ENDED_LEAKING : (int)how);
}

void _assert_true(const LargestIntegralType result, const char *const expression, const char *const file,
                  const int line)
{
	if (!result)
		ended(false, file, line, expression);
}

/* Where 0 (FATE_OK, a NULL, an exit code) was expected or found, it is an error or a NULL that was met. */
void _assert_int_equal(const LargestIntegralType a, const LargestIntegralType b, const char *const file,
                       const int line)
{
	char what[128];

	if (a == b)
		return;
	snprintf(what, sizeof(what), "%" PRIdMAX " is not %" PRIdMAX, (intmax_t)a, (intmax_t)b);
	ended(a != 0 && b != 0, file, line, what);
}

void _assert_int_not_equal(const LargestIntegralType a, const LargestIntegralType b, const char *const file,
                           const int line)
{
	if (a == b)
		ended(a != 0, file, line, "two numbers are equal");
}

void _assert_string_equal(const char *const a, const char *const b, const char *const file, const int line)
{
	char what[512];

	if (strcmp(a, b) == 0)
		return;
	snprintf(what, sizeof(what), "\"%.200s\" is not \"%.200s\"", a, b);
	ended(true, file, line, what);
}

void _assert_string_not_equal(const char *const a, const char *const b, const char *file, const int line)
{
	if (strcmp(a, b) == 0)
		ended(true, file, line, "two texts are equal");
}

void _assert_memory_equal(const void *const a, const void *const b, const size_t size, const char *const file,
                          const int line)
{
	if (memcmp(a, b, size) != 0)
		ended(true, file, line, "bytes differ");
}

void _assert_memory_not_equal(const void *const a, const void *const b, const size_t size,
                              const char *const file, const int line)
{
	if (memcmp(a, b, size) == 0)
		ended(true, file, line, "bytes are equal");
}

void _assert_in_range(const LargestIntegralType value, const LargestIntegralType minimum,
                      const LargestIntegralType maximum, const char *const file, const int line)
{
	if (value < minimum || value > maximum)
		ended(true, file, line, "a number is out of range");
}

void _fail(const char *const file, const int line)
{
	ended(false, file, line, "fail()");
}

void _skip(const char *const file, const int line)
{
	(void)file;
	(void)line;
	_exit(ENDED_SKIPPED);
}

void print_error(const char *const format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
}

void print_message(const char *const format, ...)
{
	va_list args;

	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
}

static void fixture(CMFixtureFunction function, void **state)
{
	if (function != NULL && function(state) != 0)
		ended(false, "fixture", 0, "said no");
}

/* The life of a child. */
static _Noreturn void suffer(const struct group *group, uint64_t at, unsigned int seconds)
{
	void *state = NULL;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	alarm(seconds);
	dup2(said, STDOUT_FILENO);
	dup2(said, STDERR_FILENO);
	setvbuf(stdout, NULL, _IONBF, 0);
	torture_arm(mode, at);
	fixture(group->setup, &state);
	if (group->test->initial_state != NULL)
		state = group->test->initial_state;
	fixture(group->test->setup_func, &state);
	group->test->test_func(&state);
	fixture(group->test->teardown_func, &state);
	fixture(group->teardown, &state);
	torture_disarm();
	_exit(leaks() ? ENDED_LEAKING : ENDED_WELL);
}

/* What a process does only once is done before, but where it is itself what is looked at. */
static void warm_up(void)
{
	struct codec_settings settings = { .record_bytes = (size_t)1 << 20 };
	struct codec *codec = NULL;
	struct error error;

	if (codec_new == NULL || getenv("TORTURE_COLD") != NULL)
		return;
	if (codec_new(&codec, &settings, &error) == FATE_OK)
		codec_free(codec);
}

/* Runs the test once, in a process of its own. Returns what waitpid says of it. */
static int run_once(const struct group *group, enum torture_mode how, uint64_t at, unsigned int seconds)
{
	int status = 0;

	memset(seen, 0, offsetof(struct torture_seen, stacks));
	if (ftruncate(said, 0) != 0 || lseek(said, 0, SEEK_SET) != 0)
		abort();
	mode = how;
	fflush(report);
	pid_t child = fork();
	if (child < 0)
		abort();
	if (child == 0)
		suffer(group, at, seconds);
	while (waitpid(child, &status, 0) != child)
		;
	return status;
}

static const char *ending_name(int status)
{
	static const struct {
		int code;
		const char *name;
	} names[] = {
		{ ENDED_WELL, "well" },         { ENDED_NOTICED, "noticed" },
		{ ENDED_MISNAMED, "misnamed" }, { ENDED_SILENT, "silent" },
		{ ENDED_LEAKING, "leak" },      { ENDED_SKIPPED, "skipped" },
		{ ENDED_EARLY, "early" },       { 66, "crash" },
	};

	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGALRM ? "hang" : "signal";
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (WEXITSTATUS(status) == names[i].code)
			return names[i].name;
	return "exit";
}

/* A run in one line, then where the allocation was asked for, then what the child said. */
static void tell(const struct group *group, int status, uint64_t at)
{
	char line[1024];

	fprintf(report, "@ %s %s %d %" PRIu64 " %d\n", ending_name(status), group->test->name, (int)mode, at,
	        status);
	for (int i = 0; i < seen->frames_len; i++) {
		Dl_info info;
		if (dladdr((char *)seen->frames[i] - 1, &info) != 0)
			fprintf(report, "> %s %#" PRIxPTR "\n", info.dli_fname,
			        (uintptr_t)seen->frames[i] - 1 - (uintptr_t)info.dli_fbase);
	}
	FILE *text = fdopen(dup(said), "r");
	if (text == NULL)
		abort();
	rewind(text);
	for (int lines = 0; lines < 4000 && fgets(line, sizeof(line), text) != NULL; lines++)
		fprintf(report, "| %s%s", line, strchr(line, '\n') == NULL ? "\n" : "");
	fclose(text);
}

/* The ways that were met in an earlier test of this program, or in this one, and where in this one last. */
static struct way {
	uint64_t way; /* 0: the place is free */
	uint64_t last;
	const struct group *group;
} ways[WAYS_MOST];

static struct way *way_of(uint64_t way)
{
	size_t at = (size_t)(way >> 20) % WAYS_MOST;

	while (ways[at].way != 0 && ways[at].way != way)
		at = (at + 1) % WAYS_MOST;
	return &ways[at];
}

/* Which of the counted allocations are made to fail: the first and the last of each new way, or all. Marks in chosen. */
static void choose(const struct group *group, uint64_t count, const uint64_t *stacks, uint8_t *chosen)
{
	static size_t met;

	for (uint64_t i = 0; i < count; i++) {
		struct way *way = way_of(stacks[i]);
		chosen[i] = way->way == 0 || getenv("TORTURE_EVERY") != NULL;
		if (way->way == 0 && ++met > WAYS_MOST / 2)
			abort();
		if (way->way == 0)
			*way = (struct way){ .way = stacks[i], .group = group };
		way->last = i;
	}
	for (size_t i = 0; i < WAYS_MOST; i++)
		if (ways[i].way != 0 && ways[i].group == group)
			chosen[ways[i].last] = 1;
}

/* Thins out what was chosen to most, by chance. */
static void thin(uint64_t count, uint8_t *chosen, uint64_t most)
{
	uint64_t left = 0;

	for (uint64_t i = 0; i < count; i++)
		left += chosen[i];
	for (uint64_t i = 0; i < count; i++) {
		if (!chosen[i])
			continue;
		chosen[i] = (uint64_t)(drand48() * (double)left) < most;
		most -= chosen[i];
		left--;
	}
}

static uint64_t setting(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);

	return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

static int64_t now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Has the time passed that there was? */
static bool over(void)
{
	return (uint64_t)time(NULL) >= setting("TORTURE_UNTIL", UINT64_MAX);
}

static void torture_one(const struct group *group)
{
	int64_t started = now_ms();
	int status = run_once(group, TORTURE_COUNT, 0, 600);
	int64_t took = now_ms() - started;
	uint64_t count = seen->count < TORTURE_MOST ? seen->count : TORTURE_MOST;
	uint64_t spared = seen->spared;
	uint64_t tried = 0;
	unsigned int seconds = (unsigned int)(SECONDS_LEAST + 20 * took / 1000);

	if (status != 0)
		tell(group, status, 0);
	uint8_t *chosen = calloc(count + 1, 1);
	if (chosen == NULL)
		abort();
	if (status == 0) {
		choose(group, count, seen->stacks, chosen);
		thin(count, chosen, setting("TORTURE_MOST", UINT64_MAX));
	}
	for (uint64_t i = 0; i < count; i++) {
		for (int how = TORTURE_ONCE; chosen[i] && how <= TORTURE_ON; how++) {
			if (over())
				break;
			status = run_once(group, (enum torture_mode)how, i, seconds);
			tell(group, status, i);
			tried++;
		}
	}
	free(chosen);
	fprintf(report, "= %s %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRId64 "\n", group->test->name, count,
	        spared, tried, now_ms() - started);
}

int _cmocka_run_group_tests(const char *name, const struct CMUnitTest *const tests, const size_t len,
                            CMFixtureFunction setup, CMFixtureFunction teardown)
{
	const char *path = getenv("TORTURE_REPORT");
	const char *only = getenv("TORTURE_TEST");

	(void)name;
	srand48((long)setting("TORTURE_SEED", 1));
	report = fopen(path != NULL ? path : "/dev/stdout", "w");
	said = memfd_create("said", MFD_CLOEXEC);
	seen = mmap(NULL, sizeof(*seen), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (report == NULL || said < 0 || seen == MAP_FAILED)
		abort();
	torture_prepare(seen);
	warm_up();
	struct group *groups = calloc(len, sizeof(*groups));
	if (groups == NULL)
		abort();
	for (size_t i = 0; i < len; i++)
		groups[i] = (struct group){ &tests[i], setup, teardown };
	for (size_t i = 0; i < len; i++)
		if (!over() && (only == NULL || strcmp(only, tests[i].name) == 0))
			torture_one(&groups[i]);
	free(groups);
	fclose(report);
	return 0;
}
