// links: cli config core
/* test_cli_parse.c - the words of the command line against the table. */
#include "cli/parse.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#define WORDS_MAX 16

struct call {
	char *argv[WORDS_MAX];
	int argc;
	struct parsed parsed;
	struct error error;
};

/* Parses "fermata" and the words, NULL after the last. */
static enum fate parse_preset(struct call *call, const char *preset, const char *const *words)
{
	*call = (struct call){ .error = { .fate = FATE_OK } };
	call->argv[call->argc++] = (char *)(uintptr_t) "fermata";
	while (*words != NULL)
		call->argv[call->argc++] = (char *)(uintptr_t)*words++;
	return parse_words(&call->parsed, call->argc, call->argv, preset, &call->error);
}

#define PARSE(call, ...) parse_preset(call, NULL, (const char *const[]){ __VA_ARGS__, NULL })

static void assert_refused(struct call *call, enum fate fate, const char *word)
{
	assert_int_equal(fate, FATE_FATAL);
	assert_int_equal(call->error.code, ERR_USAGE);
	assert_int_equal(error_exit_code(&call->error), 2);
	if (strstr(call->error.message, word) == NULL)
		fail_msg("\"%s\" is not in \"%s\"", word, call->error.message);
	parsed_done(&call->parsed);
}

static void a_command_and_its_words(void **state)
{
	struct call call;

	(void)state;
	assert_int_equal(PARSE(&call, "approve", "SESSION-808", "--reason", "why", "--edit=a=1", "--edit", "b=2"),
	                 FATE_OK);
	assert_string_equal(call.parsed.command->name, "approve");
	assert_int_equal(call.parsed.arguments_len, 1);
	assert_string_equal(call.parsed.arguments[0], "SESSION-808");
	assert_int_equal(call.parsed.options_len, 3);
	assert_string_equal(call.parsed.options[0].spec->name, "reason");
	assert_string_equal(call.parsed.options[0].value, "why");
	assert_string_equal(call.parsed.options[1].value, "a=1");
	assert_string_equal(call.parsed.options[2].value, "b=2");
	parsed_done(&call.parsed);
}

static void common_options_stand_anywhere(void **state)
{
	struct call call;

	(void)state;
	assert_int_equal(
		PARSE(&call, "--config", "f", "-X", "a=b", "topics", "-Xc=d", "create", "--config=g", "-X", "e=f"),
		FATE_OK);
	assert_string_equal(call.parsed.command->name, "topics create");
	assert_string_equal(call.parsed.config_file, "g");
	assert_int_equal(call.parsed.overrides_len, 3);
	assert_string_equal(call.parsed.overrides[0], "a=b");
	assert_string_equal(call.parsed.overrides[1], "c=d");
	assert_string_equal(call.parsed.overrides[2], "e=f");
	parsed_done(&call.parsed);
}

static void help_and_version(void **state)
{
	struct call call;

	(void)state;
	assert_int_equal(PARSE(&call, "--help"), FATE_OK);
	assert_int_equal(call.parsed.wanted, WANTED_HELP);
	assert_null(call.parsed.command);
	parsed_done(&call.parsed);
	assert_int_equal(PARSE(&call, "show", "-h"), FATE_OK); /* without the ID that it needs */
	assert_int_equal(call.parsed.wanted, WANTED_HELP);
	assert_string_equal(call.parsed.command->name, "show");
	parsed_done(&call.parsed);
	assert_int_equal(PARSE(&call, "help", "keys", "generate"), FATE_OK);
	assert_string_equal(call.parsed.command->name, "keys generate");
	parsed_done(&call.parsed);
	assert_int_equal(PARSE(&call, "topics", "--help"), FATE_OK);
	assert_string_equal(call.parsed.group, "topics");
	parsed_done(&call.parsed);
	assert_int_equal(PARSE(&call, "help", "topics"), FATE_OK);
	assert_string_equal(call.parsed.group, "topics");
	parsed_done(&call.parsed);
	assert_int_equal(PARSE(&call, "help", "help"), FATE_OK);
	assert_null(call.parsed.command);
	parsed_done(&call.parsed);
	assert_int_equal(PARSE(&call, "--version"), FATE_OK);
	assert_int_equal(call.parsed.wanted, WANTED_VERSION);
	parsed_done(&call.parsed);
}

static void what_is_unknown_names_the_nearest(void **state)
{
	struct call call;

	(void)state;
	assert_refused(&call, PARSE(&call, "pendig"), "`fermata pending`");
	assert_refused(&call, PARSE(&call, "aprove", "x"), "`fermata approve`");
	assert_refused(&call, PARSE(&call, "zzzzzzzzzzzzzzz"), "--help");
	assert_refused(&call, PARSE(&call, "topics"), "topics create");
	assert_refused(&call, PARSE(&call, "topics", "destroy"), "topics create");
	assert_refused(&call, PARSE(&call, "pending", "--jsno"), "--json");
	assert_refused(&call, PARSE(&call, "pending", "--tenent=x"), "--tenant");
	assert_refused(&call, PARSE(&call, "--confg", "x", "pending"), "--config");
	assert_refused(&call, PARSE(&call, "--json", "pending"), "behind it");
	assert_refused(&call, PARSE(&call, "pending", "-j"), "-j: see");
	assert_refused(&call, PARSE(&call, "pending", "--X", "a=b"), "--X");
	assert_refused(&call, PARSE(&call, "help", "pendig"), "`fermata pending`");
}

static void values_and_counts(void **state)
{
	struct call call;

	(void)state;
	assert_refused(&call, parse_preset(&call, NULL, (const char *const[]){ NULL }), "command is missing");
	assert_refused(&call, PARSE(&call, "pending", "-X"), "KEY=VALUE");
	assert_refused(&call, PARSE(&call, "--config"), "FILE");
	assert_refused(&call, PARSE(&call, "approve", "x", "--reason"), "--reason");
	assert_refused(&call, PARSE(&call, "pending", "--json=yes"), "takes no value");
	assert_refused(&call, PARSE(&call, "approve"), "ID");
	assert_refused(&call, PARSE(&call, "show", "a", "b"), "\"b\"");
	assert_refused(&call, PARSE(&call, "worker", "now"), "\"now\"");
}

static void words_behind_two_dashes_are_arguments(void **state)
{
	struct call call;

	(void)state;
	assert_int_equal(PARSE(&call, "show", "--json", "--", "--state"), FATE_OK);
	assert_int_equal(call.parsed.options_len, 1);
	assert_string_equal(call.parsed.arguments[0], "--state");
	parsed_done(&call.parsed);
	assert_int_equal(PARSE(&call, "suspend", "-"), FATE_OK);
	assert_string_equal(call.parsed.arguments[0], "-");
	parsed_done(&call.parsed);
	assert_int_equal(PARSE(&call, "approve", "x", "--reason", "--json"),
	                 FATE_OK); /* a value may begin with dashes */
	assert_string_equal(call.parsed.options[0].value, "--json");
	parsed_done(&call.parsed);
}

static void a_preset_needs_no_name(void **state)
{
	struct call call;

	(void)state;
	assert_int_equal(parse_preset(&call, "worker", (const char *const[]){ "--drain", "-X", "a=b", NULL }),
	                 FATE_OK);
	assert_string_equal(call.parsed.command->name, "worker");
	assert_string_equal(call.parsed.options[0].spec->name, "drain");
	parsed_done(&call.parsed);
	assert_refused(&call, parse_preset(&call, "worker", (const char *const[]){ "worker", NULL }),
	               "\"worker\"");
}

static void raw_words_are_kept_without_the_common_ones(void **state)
{
	struct call call;

	(void)state;
	assert_int_equal(
		PARSE(&call, "-X", "a=b", "demo", "--pause", "0", "--mock", "--config", "f", "--kafka-libs=d"),
		FATE_OK);
	assert_int_equal(call.parsed.raw_len, 4);
	assert_string_equal(call.parsed.raw[0], "--pause");
	assert_string_equal(call.parsed.raw[1], "0");
	assert_string_equal(call.parsed.raw[2], "--mock");
	assert_string_equal(call.parsed.raw[3], "--kafka-libs=d");
	parsed_done(&call.parsed);
}

static void what_is_not_utf8(void **state)
{
	struct call call;

	(void)state;
	assert_refused(&call, PARSE(&call, "show", "SESSION-\xff"), "argument 1 of `fermata show` (ID)");
	assert_refused(&call, PARSE(&call, "approve", "x", "--reason", "na\xc3"), "--reason");
	assert_refused(&call, PARSE(&call, "approve", "x", "--as=\xed\xa0\x80"), "--as");
	assert_refused(&call, PARSE(&call, "pending", "--session", "\xc0\x80"), "--session");
	assert_refused(&call, PARSE(&call, "-X", "worker.group=\x80", "pending"), "-X");
	assert_int_equal(PARSE(&call, "approve", "\xc3\xbc", "--reason", "\xe2\x82\xac"), FATE_OK);
	parsed_done(&call.parsed);
	/* The name of a file may be any. */
	assert_int_equal(PARSE(&call, "--config", "\xff", "suspend", "\xff.jsonl"), FATE_OK);
	parsed_done(&call.parsed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_command_and_its_words),
		cmocka_unit_test(common_options_stand_anywhere),
		cmocka_unit_test(help_and_version),
		cmocka_unit_test(what_is_unknown_names_the_nearest),
		cmocka_unit_test(values_and_counts),
		cmocka_unit_test(words_behind_two_dashes_are_arguments),
		cmocka_unit_test(a_preset_needs_no_name),
		cmocka_unit_test(raw_words_are_kept_without_the_common_ones),
		cmocka_unit_test(what_is_not_utf8),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
