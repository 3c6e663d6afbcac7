// links: core
// A log line is one line whatever was put into it, in one write, from any thread.
#include "core/json_scan.h"
#include "core/log.h"
#include "core/memory.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char captured[4 * 1024 * 1024];
static size_t captured_len;
static FILE *capture_file;
static int saved_stderr;

static void capture_start(void)
{
	fflush(stderr);
	saved_stderr = dup(STDERR_FILENO);
	capture_file = tmpfile();
	assert_non_null(capture_file);
	dup2(fileno(capture_file), STDERR_FILENO);
}

static void capture_end(void)
{
	dup2(saved_stderr, STDERR_FILENO);
	close(saved_stderr);
	rewind(capture_file);
	captured_len = fread(captured, 1, sizeof(captured) - 1, capture_file);
	captured[captured_len] = '\0';
	fclose(capture_file);
}

/* What a message looks like after "<time> info intake: ", in text. */
static const char *as_text(const char *message)
{
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	capture_start();
	log_info("intake", "%s", message);
	capture_end();
	assert_int_equal(captured[captured_len - 1], '\n');
	captured[captured_len - 1] = '\0';
	assert_null(strchr(captured, '\n'));
	char *at = strstr(captured, " info intake: ");
	assert_non_null(at);
	return at + 14;
}

/* The whole line in JSON, checked for being that. */
static const char *as_json(const char *message)
{
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
	capture_start();
	log_info("intake", "%s", message);
	capture_end();
	assert_int_equal(captured[captured_len - 1], '\n');
	captured[captured_len - 1] = '\0';
	assert_null(strchr(captured, '\n'));
	assert_true(json_scan(view_of(captured)));
	return captured;
}

static void a_line_in_text(void **state)
{
	(void)state;
	assert_string_equal(as_text("batch of 256 committed"), "batch of 256 committed");
	/* 2026-11-30T06:45:52.123Z */
	static const char shape[] = "dddd-dd-ddTdd:dd:dd.dddZ info intake: batch";
	for (size_t i = 0; i < sizeof(shape) - 1; i++) {
		if (shape[i] == 'd' && i < 23)
			assert_in_range(captured[i], '0', '9');
		else
			assert_int_equal(captured[i], shape[i]);
	}
}

static void a_line_in_json(void **state)
{
	(void)state;
	assert_non_null(
		strstr(as_json("said \"hi\" \\ there"),
	           "Z\",\"level\":\"info\",\"room\":\"intake\",\"message\":\"said \\\"hi\\\" \\\\ there\"}"));
	assert_memory_equal(captured, "{\"time\":\"2", 10);
}

static void a_line_cannot_be_forged(void **state)
{
	(void)state;
	static const struct {
		const char *message;
		const char *text;
		const char *json;
	} cases[] = {
		{ "a\n2026-11-30T06:45:52.123Z info intake: forged",
		  "a\\n2026-11-30T06:45:52.123Z info intake: forged",
		  "a\\n2026-11-30T06:45:52.123Z info intake: forged" },
		{ "a\r\tb", "a\\r\\tb", "a\\r\\tb" },
		{ "\x1b[2Jgone\x07", "\\x1b[2Jgone\\x07", "\\u001b[2Jgone\\u0007" },
		{ "\x7f", "\\x7f", "\\u007f" },
		{ "\xC2\x85 \xC2\x9B"
		  "31m",
		  "\\u0085 \\u009b31m", "\\u0085 \\u009b31m" },
		{ "\xE2\x80\xA8\xE2\x80\xA9", "\\u2028\\u2029", "\\u2028\\u2029" },
		{ "\xC2\xA0\xC3\xA9\xE2\x80\xA6\xF0\x9F\x8E\xB5", "\xC2\xA0\xC3\xA9\xE2\x80\xA6\xF0\x9F\x8E\xB5",
		  "\xC2\xA0\xC3\xA9\xE2\x80\xA6\xF0\x9F\x8E\xB5" },
		{ "bad \xFF\xC3 utf8 \xED\xA0\x80", "bad \\xff\\xc3 utf8 \\xed\\xa0\\x80",
		  "bad \\ufffd\\ufffd utf8 \\ufffd\\ufffd\\ufffd" },
		{ "cut \xF0\x9F\x8E", "cut \\xf0\\x9f\\x8e", "cut \\ufffd\\ufffd\\ufffd" },
		{ "", "", "\"message\":\"\"}" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_string_equal(as_text(cases[i].message), cases[i].text);
		assert_non_null(strstr(as_json(cases[i].message), cases[i].json));
	}
}

static void a_long_line_is_cut_and_stays_whole(void **state)
{
	(void)state;
	static char message[8000];

	memset(message, 'a', sizeof(message) - 1);
	const char *text = as_text(message);
	assert_true(captured_len <= 4096);
	assert_string_equal(text + strlen(text) - 4, "a...");
	memset(message, '\x01', sizeof(message) - 1);
	as_json(message);
	assert_true(captured_len <= 4096);
	assert_string_equal(captured + captured_len - 12, "\\u0001...\"}");
	for (size_t i = 0; i + 2 < sizeof(message); i += 2)
		memcpy(message + i, "\xC3\xA9", 2);
	message[sizeof(message) - 1] = '\0';
	as_text(message);
	assert_true(view_is_utf8(view_of(captured)));
}

static void an_error_in_a_line(void **state)
{
	(void)state;
	struct error error;

	error_set_native(&error, FATE_RETRY, ERR_SERVICE, "57P01", "could not commit: server is going down");
	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	capture_start();
	log_error(LOG_LEVEL_WARN, "intake", &error);
	log_error(LOG_LEVEL_DEBUG, "intake", &error);
	capture_end();
	assert_non_null(
		strstr(captured, " warn intake: could not commit: server is going down (retry, service, 57P01)\n"));
	assert_null(strstr(captured, "debug"));

	error.native[0] = '\0';
	capture_start();
	log_error(LOG_LEVEL_WARN, "intake", &error);
	capture_end();
	assert_non_null(strstr(captured, "down (retry, service)\n"));

	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_JSON);
	memcpy(error.native, "\"\n", 3);
	capture_start();
	log_error(LOG_LEVEL_ERROR, "intake", &error);
	capture_end();
	assert_true(json_scan(view_of(captured)));
	assert_non_null(strstr(captured, ",\"fate\":\"retry\",\"code\":\"service\",\"native\":\"\\\"\\n\"}\n"));
}

static void levels(void **state)
{
	(void)state;
	for (int level = LOG_LEVEL_ERROR; level <= LOG_LEVEL_DEBUG; level++) {
		log_setup((enum log_level)level, LOG_FORMAT_TEXT);
		capture_start();
		log_write(LOG_LEVEL_ERROR, "x", "line");
		log_warn("x", "line");
		log_info("x", "line");
		log_debug("x", "line");
		capture_end();
		int lines = 0;
		for (size_t i = 0; i < captured_len; i++)
			lines += captured[i] == '\n';
		assert_int_equal(lines, level + 1);
		assert_true(log_wants((enum log_level)level));
	}
	log_setup(LOG_LEVEL_WARN, LOG_FORMAT_TEXT);
	assert_false(log_wants(LOG_LEVEL_INFO));
}

static void errno_is_left_alone(void **state)
{
	(void)state;
	int saved = dup(STDERR_FILENO);

	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	close(STDERR_FILENO);
	errno = ERANGE;
	log_info("x", "nobody is there to read this");
	int after = errno;
	dup2(saved, STDERR_FILENO);
	close(saved);
	assert_int_equal(after, ERANGE);
}

#define THREADS 8
#define LINES   500

static void *talk(void *argument)
{
	for (int i = 0; i < LINES; i++) {
		log_info(
			"talker", "%s line %d %.*s end", (const char *)argument, i, i % 200,
			"................................................................................................"
			"................................................................................................"
			"........");
		if (i % 100 == 0)
			log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	}
	return NULL;
}

static void lines_of_threads_never_mix(void **state)
{
	(void)state;
	static const char *const names[THREADS] = { "t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7" };
	pthread_t threads[THREADS];
	int counts[THREADS] = { 0 };

	log_setup(LOG_LEVEL_INFO, LOG_FORMAT_TEXT);
	capture_start();
	for (int i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, talk, (void *)(uintptr_t)names[i]);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	capture_end();
	char *save = NULL;
	for (char *line = strtok_r(captured, "\n", &save); line != NULL; line = strtok_r(NULL, "\n", &save)) {
		int who;
		int number;
		assert_int_equal(line[23], 'Z');
		assert_int_equal(sscanf(line + 24, " info talker: t%d line %d ", &who, &number), 2);
		assert_in_range(who, 0, THREADS - 1);
		assert_int_equal(number, counts[who]++);
		assert_string_equal(line + strlen(line) - 4, " end");
	}
	for (int i = 0; i < THREADS; i++)
		assert_int_equal(counts[i], LINES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_in_text),          cmocka_unit_test(a_line_in_json),
		cmocka_unit_test(a_line_cannot_be_forged), cmocka_unit_test(a_long_line_is_cut_and_stays_whole),
		cmocka_unit_test(an_error_in_a_line),      cmocka_unit_test(levels),
		cmocka_unit_test(errno_is_left_alone),     cmocka_unit_test(lines_of_threads_never_mix),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
