// links: core store
/* What each SQLSTATE means for us, and that no value of a record is repeated. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "store/store_sqlstate.h"

#include <string.h>

static void each_class_has_a_fate(void **state)
{
	(void)state;
	static const struct {
		const char *sqlstate;
		enum fate fate;
		enum error_code code;
	} cases[] = {
		{ "08006", FATE_RETRY, ERR_SERVICE }, { "0A000", FATE_RETRY, ERR_SERVICE },
		{ "21000", FATE_REJECT, ERR_POISON }, { "22021", FATE_REJECT, ERR_POISON },
		{ "22P02", FATE_REJECT, ERR_POISON }, { "23505", FATE_REJECT, ERR_POISON },
		{ "25006", FATE_RETRY, ERR_SERVICE }, { "25P03", FATE_RETRY, ERR_SERVICE },
		{ "25P02", FATE_REJECT, ERR_POISON }, { "26000", FATE_RETRY, ERR_SERVICE },
		{ "3F000", FATE_FATAL, ERR_USAGE },   { "40001", FATE_RETRY, ERR_BUSY },
		{ "40P01", FATE_RETRY, ERR_BUSY },    { "42501", FATE_FATAL, ERR_USAGE },
		{ "42703", FATE_FATAL, ERR_BUG },     { "42P01", FATE_FATAL, ERR_USAGE },
		{ "53300", FATE_RETRY, ERR_SERVICE }, { "54000", FATE_REJECT, ERR_POISON },
		{ "55P03", FATE_RETRY, ERR_BUSY },    { "57014", FATE_RETRY, ERR_BUSY },
		{ "57P01", FATE_RETRY, ERR_SERVICE }, { "58030", FATE_RETRY, ERR_SERVICE },
		{ "XX000", FATE_RETRY, ERR_SERVICE }, { "P0001", FATE_REJECT, ERR_POISON },
		{ NULL, FATE_RETRY, ERR_SERVICE },    { "", FATE_RETRY, ERR_SERVICE },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		enum error_code code;
		assert_int_equal(sqlstate_fate(cases[i].sqlstate, &code), cases[i].fate);
		assert_int_equal(code, cases[i].code);
	}
}

static void a_refused_value_is_not_repeated(void **state)
{
	(void)state;
	static const char *const sqlstates[] = { "22P02", "23505", "23514", "54000", "P0001", "XX000", "99999" };

	for (size_t i = 0; i < sizeof(sqlstates) / sizeof(sqlstates[0]); i++) {
		struct sql_error sql = {
			.sqlstate = sqlstates[i],
			.severity = "ERROR",
			.primary = "invalid input: \"the secret\"",
			.table = "checkpoint",
			.constraint = "checkpoint_pkey",
		};
		struct error error = { 0 };
		assert_int_not_equal(sqlstate_error(&sql, "inserting a checkpoint", &error), FATE_OK);
		assert_null(strstr(error.message, "secret"));
		assert_non_null(strstr(error.message, "table checkpoint, constraint checkpoint_pkey"));
		assert_non_null(strstr(error.message, "inserting a checkpoint"));
		assert_string_equal(error.native, sqlstates[i]);
	}
}

static void what_has_no_value_is_said_in_the_servers_words(void **state)
{
	(void)state;
	struct sql_error sql = { .sqlstate = "53100",
		                     .severity = "ERROR",
		                     .primary = "could not extend file: No space left on device" };
	struct error error = { 0 };

	assert_int_equal(sqlstate_error(&sql, "inserting a payload", &error), FATE_RETRY);
	assert_non_null(strstr(error.message, "No space left on device"));
}

static void the_end_of_the_session_is_a_retry(void **state)
{
	(void)state;
	struct sql_error sql = { .sqlstate = "22000", .severity = "FATAL", .primary = "secret" };
	struct error error = { 0 };

	assert_int_equal(sqlstate_error(&sql, "committing", &error), FATE_RETRY);
	assert_int_equal(error.code, ERR_SERVICE);
	assert_null(strstr(error.message, "secret"));
	sql = (struct sql_error){ 0 };
	assert_int_equal(sqlstate_error(&sql, "committing", &error), FATE_RETRY);
	assert_non_null(strstr(error.message, "connection was lost"));
	assert_int_equal(sqlstate_error(&sql, "committing", NULL), FATE_RETRY);
}

static void long_names_are_cut(void **state)
{
	(void)state;
	char name[300];
	struct sql_error sql = { .sqlstate = "23505", .table = name, .constraint = name, .column = name };
	struct error error = { 0 };

	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_int_equal(sqlstate_error(&sql, "inserting", &error), FATE_REJECT);
	assert_true(strlen(error.message) < sizeof(error.message));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_class_has_a_fate),
		cmocka_unit_test(a_refused_value_is_not_repeated),
		cmocka_unit_test(what_has_no_value_is_said_in_the_servers_words),
		cmocka_unit_test(the_end_of_the_session_is_a_retry),
		cmocka_unit_test(long_names_are_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
