// links: core
// What a caller is told: fate, code, one line of text that fits, and the exit code of the command line.
#include "core/error.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void a_leaf_fills_it(void **state)
{
	(void)state;
	struct error error;

	assert_int_equal(error_set(&error, FATE_REJECT, ERR_INVALID, "could not take %s: %d", "seq", -1),
	                 FATE_REJECT);
	assert_int_equal(error.fate, FATE_REJECT);
	assert_int_equal(error.code, ERR_INVALID);
	assert_string_equal(error.native, "");
	assert_string_equal(error.message, "could not take seq: -1");
}

static void nobody_has_to_listen(void **state)
{
	(void)state;
	assert_int_equal(error_set(NULL, FATE_RETRY, ERR_SERVICE, "gone"), FATE_RETRY);
	assert_int_equal(error_set_native(NULL, FATE_FATAL, ERR_POISON, "22P02", "bad"), FATE_FATAL);
	assert_int_equal(error_set_errno(NULL, FATE_RETRY, ENOENT, "gone"), FATE_RETRY);
}

static void the_native_name_is_kept_and_cut(void **state)
{
	(void)state;
	struct error error;

	error_set_native(&error, FATE_RETRY, ERR_SERVICE, "57P01", "could not commit");
	assert_string_equal(error.native, "57P01");
	error_set_native(&error, FATE_RETRY, ERR_SERVICE, NULL, "could not commit");
	assert_string_equal(error.native, "");
	error_set_native(&error, FATE_RETRY, ERR_SERVICE, "UNKNOWN_TOPIC_OR_PART", "could not read");
	assert_string_equal(error.native, "UNKNOWN_TOPIC_O");
}

static void errno_has_a_name_and_a_text(void **state)
{
	(void)state;
	struct error error;

	error_set_errno(&error, FATE_FATAL, ENOENT, "could not open \"%s\"", "x");
	assert_int_equal(error.code, ERR_SYSTEM);
	assert_string_equal(error.native, "ENOENT");
	assert_string_equal(error.message, "could not open \"x\": No such file or directory");
	error_set_errno(&error, FATE_FATAL, 123456, "could not open");
	assert_string_equal(error.native, "");
	assert_string_equal(error.message, "could not open: error 123456 of the operating system");
}

static void the_middle_says_what_was_being_done(void **state)
{
	(void)state;
	struct error error;

	error_set(&error, FATE_RETRY, ERR_SERVICE, "connection lost");
	assert_int_equal(error_wrap(&error, "sealing checkpoint %d", 7), FATE_RETRY);
	assert_string_equal(error.message, "sealing checkpoint 7: connection lost");
	assert_int_equal(error.code, ERR_SERVICE);
}

static void a_message_may_be_made_of_the_old_one(void **state)
{
	(void)state;
	struct error error;

	error_set_native(&error, FATE_RETRY, ERR_SERVICE, "08006", "lost");
	error_set_native(&error, FATE_FATAL, ERR_BUG, error.native, "gave up: %s", error.message);
	assert_string_equal(error.message, "gave up: lost");
	assert_string_equal(error.native, "08006");
}

static void a_message_is_one_line(void **state)
{
	(void)state;
	struct error error;

	error_set(&error, FATE_RETRY, ERR_SERVICE, "FATAL: no\n\tsuch\x7f role\r\n");
	assert_string_equal(error.message, "FATAL: no  such  role");
}

static void a_long_message_is_cut_between_characters(void **state)
{
	(void)state;
	struct error error;
	char text[600];

	memset(text, 'a', sizeof(text));
	text[599] = '\0';
	error_set(&error, FATE_RETRY, ERR_SERVICE, "%s", text);
	assert_int_equal(strlen(error.message), sizeof(error.message) - 1);
	/* A four-byte character over the edge, at each of its three places, goes as a whole. */
	for (size_t start = 252; start <= 254; start++) {
		memset(text, 'a', sizeof(text) - 1);
		memcpy(text + start, "\xF0\x9F\x8E\xB5", 4);
		error_set(&error, FATE_RETRY, ERR_SERVICE, "%s", text);
		assert_int_equal(strlen(error.message), start);
	}
	/* One that ends just inside stays. */
	memset(text, 'a', sizeof(text) - 1);
	memcpy(text + 251, "\xF0\x9F\x8E\xB5", 4);
	error_set(&error, FATE_RETRY, ERR_SERVICE, "%s", text);
	assert_int_equal(strlen(error.message), 255);
	error_wrap(&error, "%s", text);
	assert_int_equal(strlen(error.message), 255);
}

static void codes_have_the_names_of_the_contract(void **state)
{
	(void)state;
	assert_string_equal(error_code_name(ERR_FRAMING), "framing");
	assert_string_equal(error_code_name(ERR_UNKNOWN_SCHEMA), "unknown_schema");
	assert_string_equal(error_code_name(ERR_MALFORMED), "malformed");
	assert_string_equal(error_code_name(ERR_INVALID), "invalid");
	assert_string_equal(error_code_name(ERR_TOO_LARGE), "too_large");
	assert_string_equal(error_code_name(ERR_NOT_AT_BOUNDARY), "not_at_boundary");
	assert_string_equal(error_code_name(ERR_CONFLICT), "conflict");
	assert_string_equal(error_code_name(ERR_UNCLAIMED_FULL), "unclaimed_full");
	assert_string_equal(error_code_name(ERR_REJECTED_BY_STORE), "rejected_by_store");
	for (int code = ERR_NONE; code <= ERR_BUG; code++)
		assert_non_null(error_code_name((enum error_code)code));
	assert_string_equal(error_code_name((enum error_code)999), "?");
	assert_string_equal(error_fate_name(FATE_FATAL), "fatal");
	assert_string_equal(error_fate_name((enum fate)9), "?");
}

static void exit_codes(void **state)
{
	(void)state;
	static const struct {
		enum fate fate;
		enum error_code code;
		int exit;
	} cases[] = {
		{ FATE_OK, ERR_NONE, 0 },        { FATE_FATAL, ERR_USAGE, 2 },     { FATE_REJECT, ERR_USAGE, 2 },
		{ FATE_REJECT, ERR_NO, 1 },      { FATE_REJECT, ERR_INVALID, 1 },  { FATE_RETRY, ERR_SERVICE, 69 },
		{ FATE_FATAL, ERR_SERVICE, 69 }, { FATE_FATAL, ERR_BUG, 70 },      { FATE_FATAL, ERR_NONE, 70 },
		{ FATE_FATAL, ERR_INVALID, 70 }, { FATE_RETRY, ERR_STALE, 75 },    { FATE_RETRY, ERR_KEY, 75 },
		{ FATE_FATAL, ERR_KEY, 2 },      { FATE_FATAL, ERR_FENCED, 75 },   { FATE_FATAL, ERR_MEMORY, 75 },
		{ FATE_FATAL, ERR_SYSTEM, 75 },  { FATE_REJECT, ERR_TAMPERED, 1 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error error = { .fate = cases[i].fate, .code = cases[i].code };
		assert_int_equal(error_exit_code(&error), cases[i].exit);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_leaf_fills_it),
		cmocka_unit_test(nobody_has_to_listen),
		cmocka_unit_test(the_native_name_is_kept_and_cut),
		cmocka_unit_test(errno_has_a_name_and_a_text),
		cmocka_unit_test(the_middle_says_what_was_being_done),
		cmocka_unit_test(a_message_may_be_made_of_the_old_one),
		cmocka_unit_test(a_message_is_one_line),
		cmocka_unit_test(a_long_message_is_cut_between_characters),
		cmocka_unit_test(codes_have_the_names_of_the_contract),
		cmocka_unit_test(exit_codes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
