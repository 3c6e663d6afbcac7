// links: schemas core
/* Compatibility, rule by rule: a table of pairs, each judged in both directions. */
#include "schemas/compat.h"
#include "schemas/migrate.h"
#include "schemas/texts.h"
#include "tests/unit/test_schemas_words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#define ENUMX(name, list, x)  "{\"type\":\"enum\",\"name\":\"" name "\",\"symbols\":[" list "]," x "}"
#define RECX(name, x, fields) "{\"type\":\"record\",\"name\":\"" name "\"," x ",\"fields\":[" fields "]}"

/*
 * What is to be found: "" for nothing, else the beginning of each reason as "PATH: WHY", one a line, in order;
 * those that begin with ~ are warnings, and stand after the others; ! in front of all says that no value passes.
 */
struct pair {
	const char *old, *new;
	const char *backward; /* new reads old */
	const char *forward;  /* old reads new */
};

static const struct pair pairs[] = {
	/* primitives and promotions */
	{ INT, INT, "", "" },
	{ INT, LONG, "", "!int: the writer's long is not the reader's int" },
	{ INT, FLOAT, "", "!int: the writer's float is not the reader's int" },
	{ INT, DOUBLE, "", "!int: the writer's double is not the reader's int" },
	{ LONG, FLOAT, "", "!long: the writer's float is not the reader's long" },
	{ LONG, DOUBLE, "", "!long: the writer's double is not the reader's long" },
	{ FLOAT, DOUBLE, "", "!float: the writer's double is not the reader's float" },
	{ STRING, BYTES, "", "~string: the writer's bytes become a string" },
	{ "\"boolean\"", INT, "!int: the writer's boolean", "!boolean: the writer's int" },
	{ "\"null\"", STRING, "!string: the writer's null", "!null: the writer's string" },
	{ INT, STRING, "!string: the writer's int", "!int: the writer's string" },
	{ ARRAY(INT), MAP(INT), "!map: the writer's array", "!array: the writer's map" },
	/* fields: added, dropped, reordered, with defaults and without */
	{ REC("R", F("a", INT)), REC("R", F("a", INT) "," FX("b", INT, "\"default\":1")), "", "" },
	{ REC("R", F("a", INT)), REC("R", F("a", INT) "," F("b", INT)),
	  "!R.b: the writer has no such field, and the reader has no default for it", "" },
	{ REC("R", F("a", INT) "," F("b", STRING)), REC("R", F("b", STRING) "," F("a", INT)), "", "" },
	{ REC("R", F("a", INT) "," F("b", INT)), REC("R", ""), "",
	  "!R.a: the writer has no such field\nR.b: the writer has no such field" },
	{ REC("R", FX("a", INT, "\"default\":1")), REC("R", ""), "", "" },
	{ REC("R", F("a", INT) "," F("b", INT)), REC("R", F("a", STRING) "," F("b", LONG) "," F("c", INT)),
	  "!R.a: the writer's int is not the reader's string\nR.c: the writer has no such field",
	  "!R.a: the writer's string is not the reader's int\nR.b: the writer's long is not the reader's int" },
	{ REC("R", F("a", REC("I", F("x", ARRAY(INT))))), REC("R", F("a", REC("I", F("x", ARRAY(STRING))))),
	  "!R.a.x[]: the writer's int", "!R.a.x[]: the writer's string" },
	/* aliases of fields: only the reader's count */
	{ REC("R", F("old", INT)), REC("R", FX("new", INT, "\"aliases\":[\"old\"]")), "",
	  "!R.old: the writer has no such field" },
	{ REC("R", F("a", INT) "," F("b", INT)), REC("R", FX("a", INT, "\"aliases\":[\"b\"]")),
	  "!R.a: two fields of the writer come to it, b is the second", "!R.b: the writer has no such field" },
	{ REC("R", F("x", INT)),
	  REC("R", FX("a", INT, "\"aliases\":[\"x\"],\"default\":0") "," FX("b", INT, "\"aliases\":[\"x\"]")),
	  "!R.x: two fields of the reader have this alias", "!R.x: the writer has no such field" },
	/* names of types and their aliases */
	{ REC("a.R", ""), REC("b.R", ""), "", "" },
	{ REC("R", ""), REC("S", ""), "!S: the writer's record R is not the reader's S, which has no such alias",
	  "!R: the writer's record S" },
	{ REC("a.R", ""), RECX("a.S", "\"aliases\":[\"R\"]", ""), "", "!R: the writer's record a.S" },
	{ REC("b.R", ""), RECX("a.S", "\"aliases\":[\"R\"]", ""), "!S: the writer's record b.R",
	  "!R: the writer's record a.S" },
	{ REC("b.R", ""), RECX("a.S", "\"aliases\":[\"b.R\"]", ""), "", "!R: the writer's record a.S" },
	{ ENUM("E", "\"A\""), ENUM("F", "\"A\""), "!F: the writer's enum E", "!E: the writer's enum F" },
	{ ENUM("E", "\"A\""), ENUMX("F", "\"A\"", "\"aliases\":[\"E\"]"), "", "!E: the writer's enum F" },
	{ FIXED("F", 2), FIXED("G", 2), "!G: the writer's fixed F", "!F: the writer's fixed G" },
	{ FIXED("F", 2), FIXED("F", 3), "!F: the writer's fixed has 2 bytes, the reader's 3",
	  "!F: the writer's fixed has 3 bytes, the reader's 2" },
	{ FIXED("F", 2), BYTES, "!bytes: the writer's F", "!F: the writer's bytes" },
	/* enums: a symbol more is no matter for who reads with more */
	{ ENUM("E", "\"A\""), ENUM("E", "\"B\",\"A\""), "",
	  "E: the reader's enum E lacks B of the writer's, and has no default" },
	{ ENUM("E", "\"A\""), ENUMX("E", "\"A\",\"B\"", "\"default\":\"A\""), "",
	  "E: the reader's enum E lacks B" },
	{ ENUMX("E", "\"A\"", "\"default\":\"A\""), ENUM("E", "\"A\",\"B\""), "", "" },
	{ ENUM("E", "\"A\",\"B\",\"C\",\"D\",\"G\",\"H\""), ENUM("E", "\"D\""),
	  "E: the reader's enum E lacks A, B, C and 2 more of the writer's", "" },
	{ ENUM("E", "\"A\""), ENUM("E", "\"B\""), "!E: the reader's enum E has none of the writer's symbols",
	  "!E: the reader's enum E has none" },
	{ REC("R", F("e", ENUM("E", "\"A\",\"B\""))), REC("R", FX("e", ENUM("E", "\"B\""), "\"default\":\"B\"")),
	  "R.e: the reader's enum E lacks A", "" },
	/* unions: every branch of the writer's needs a place */
	{ INT, NULLABLE(INT), "", "int: the writer's null is not the reader's int" },
	{ NULLABLE(INT), NULLABLE(LONG), "", "union: the writer's long is no branch of the reader's union" },
	{ "[" INT "," STRING "]", "[" STRING "," INT "]", "", "" },
	{ "[" INT "," STRING "]", "[" INT "," STRING ",\"null\"]", "",
	  "union: the writer's null is no branch of the reader's union" },
	{ "[" INT "," STRING "]", "[" DOUBLE "," BYTES "]", "",
	  "union: the writer's double is no branch\n~union: the writer's bytes become a string" },
	{ "[\"null\"," INT "," STRING "]", LONG,
	  "long: the writer's null is not\nlong: the writer's string is not the reader's long",
	  "!union: the writer's long is no branch" },
	{ NULLABLE(STRING), INT, "!int: the writer's null\nint: the writer's string",
	  "!union: the writer's int" },
	{ NULLABLE(ARRAY(INT)), NULLABLE(ARRAY(STRING)), "union[]: the writer's int",
	  "union[]: the writer's string" },
	{ "[" REC("a.R", F("x", INT)) "," REC("b.R", "") "]", "[" REC("b.R", "") "," REC("a.R", F("x", INT)) "]",
	  "", "" },
	{ "[" REC("R", "") "," INT "]", "[" REC("S", "") "," INT "]", "union: the writer's R is no branch",
	  "union: the writer's S is no branch" },
	{ REC("R", F("u", NULLABLE(REC("I", "")))), REC("R", F("u", NULLABLE(REC("I", F("must", INT))))),
	  "R.u.must: the writer has no such field", "" },
	/* arrays, maps, decimals */
	{ ARRAY(INT), ARRAY(LONG), "", "!array[]: the writer's long is not the reader's int" },
	{ MAP(INT), MAP(DOUBLE), "", "!map[]: the writer's double is not the reader's int" },
	{ ARRAY(NULLABLE(INT)), ARRAY(INT), "array[]: the writer's null", "" },
	{ DECIMAL(4, 2), DECIMAL(4, 2), "", "" },
	{ DECIMAL(4, 2), DECIMAL(4, 1), "!bytes: the decimals differ", "!bytes: the decimals differ" },
	{ DECIMAL(4, 2), BYTES, "", "" },
	/* circles: the same pair is looked at once, and its faults are told once */
	{ REC("R", F("next", NULLABLE("\"R\"")) "," F("v", INT)),
	  REC("R", F("v", LONG) "," FX("next", NULLABLE("\"R\""), "\"default\":null")), "",
	  "!R.v: the writer's long is not the reader's int" },
	{ REC("R", F("l", ARRAY("\"R\"")) "," F("r", MAP("\"R\"")) "," F("e", ENUM("E", "\"A\",\"B\""))),
	  REC("R", F("l", ARRAY("\"R\"")) "," F("r", MAP("\"R\"")) "," F("e", ENUM("E", "\"A\""))),
	  "R.e: the reader's enum E lacks B", "" },
	{ REC("R", F("next", NULLABLE("\"R\""))), REC("R", F("next", "[" STRING ",\"R\"]")),
	  "!R.next: the writer's null is no branch", "!R.next: the writer's string is no branch" },
	{ REC("R", F("a", REC("X", F("r", NULLABLE("\"R\""))))),
	  REC("R", F("a", REC("X", F("r", NULLABLE("\"R\""))))), "", "" },
	/* the same pair in two places, the nearer one first; what is inside of a record is told once */
	{ REC("R", F("deep", REC("D", F("e", ENUM("E", "\"A\",\"B\"")))) "," F("near", "\"E\"")),
	  REC("R", F("deep", REC("D", F("e", ENUM("E", "\"A\"")))) "," F("near", "\"E\"")),
	  "R.near: the reader's enum E lacks B\nR.deep.e: the reader's enum E lacks B", "" },
	{ REC("R", F("a", REC("I", F("x", INT))) "," F("b", "\"I\"") "," F("c", INT)),
	  REC("R", F("a", REC("I", F("x", STRING))) "," F("b", "\"I\"") "," F("c", STRING)),
	  "!R.c: the writer's int\nR.a.x: the writer's int",
	  "!R.c: the writer's string\nR.a.x: the writer's string" },
	/* warnings hide no reason */
	{ REC("R", F("b", BYTES) "," F("c", BYTES)), REC("R", F("b", STRING) "," F("c", INT)),
	  "!R.c: the writer's bytes\n~R.b: the writer's bytes become a string", "!R.c: the writer's int" },
};

struct judged {
	struct schema *writer, *reader;
	struct compat_report report;
};

static void judge(struct view writer, struct view reader, struct judged *ret_judged)
{
	struct error error = { 0 };

	assert_int_equal(schema_parse(&ret_judged->writer, writer, &error), FATE_OK);
	assert_int_equal(schema_parse(&ret_judged->reader, reader, &error), FATE_OK);
	assert_int_equal(compat_check(ret_judged->writer, ret_judged->reader, &ret_judged->report, &error),
	                 FATE_OK);
}

static void judged_done(struct judged *judged)
{
	schema_free(judged->writer);
	schema_free(judged->reader);
}

/* "" or "!", then a line for each that was told. */
static void print(const struct compat_report *report, struct buffer *out)
{
	buffer_append_text(out, report->never ? "!" : "");
	for (size_t i = 0; i < report->reasons_count; i++)
		buffer_printf(out, "%s: %s\n", report->reasons[i].path, report->reasons[i].why);
	for (size_t i = 0; i < report->warnings_count; i++)
		buffer_printf(out, "~%s: %s\n", report->warnings[i].path, report->warnings[i].why);
	buffer_append_byte(out, '\0');
}

/* Each line begins as was wanted, and there are no more. */
static bool fits(const char *said, const char *wanted)
{
	while (*wanted) {
		size_t len = strcspn(wanted, "\n");
		if (strncmp(said, wanted, len) != 0)
			return false;
		wanted += len + (wanted[len] == '\n');
		said = strchr(said, '\n');
		if (!said)
			return false;
		said++;
	}
	return *said == '\0';
}

/* migrate_plan_new is of the same opinion about what can never work. */
static bool plan_agrees(const struct judged *judged)
{
	struct error error = { 0 };
	struct plan *plan = NULL;
	bool made = migrate_plan_new(&plan, judged->writer, judged->reader, &error) == FATE_OK;

	migrate_plan_free(plan);
	return made != judged->report.never;
}

static bool check(const char *writer, const char *reader, const char *wanted)
{
	struct judged judged;
	struct buffer out;

	buffer_init(&out, 1 << 20);
	judge(view_of(writer), view_of(reader), &judged);
	print(&judged.report, &out);
	bool good = fits((const char *)out.data, wanted) && plan_agrees(&judged);
	if (!good)
		print_error("%s\n  read by %s\n  wanted %s\n  got    %s\n", writer, reader, wanted,
		            (const char *)out.data);
	buffer_done(&out);
	judged_done(&judged);
	return good;
}

static void test_pairs(void **state)
{
	bool good = true;

	(void)state;
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
		good = check(pairs[i].old, pairs[i].new, pairs[i].backward) && good;
		good = check(pairs[i].new, pairs[i].old, pairs[i].forward) && good;
		good = check(pairs[i].old, pairs[i].old, "") && check(pairs[i].new, pairs[i].new, "") && good;
	}
	assert_true(good);
}

/* The records of the program themselves: each is compatible with itself and with none of the others. */
static void test_our_records(void **state)
{
	(void)state;
	for (size_t i = 0; i < SCHEMA_TEXTS; i++) {
		for (size_t j = 0; j < SCHEMA_TEXTS; j++) {
			struct judged judged;
			judge(schema_texts[i].text, schema_texts[j].text, &judged);
			assert_int_equal(judged.report.reasons_count == 0, i == j);
			judged_done(&judged);
		}
	}
}

static void many_fields(struct buffer *text, const char *type)
{
	buffer_init(text, SCHEMA_TEXT_MAX);
	buffer_append_text(text, "{\"type\":\"record\",\"name\":\"R\",\"fields\":[");
	for (int i = 0; i < 100; i++)
		buffer_printf(text, "%s{\"name\":\"f%d\",\"type\":\"%s\"}", i ? "," : "", i, type);
	buffer_append_text(text, "]}");
}

static void test_all_are_counted(void **state)
{
	struct buffer numbers, strings, bytes;
	struct judged judged;

	(void)state;
	many_fields(&numbers, "int");
	many_fields(&strings, "string");
	many_fields(&bytes, "bytes");
	assert_true(!buffer_failed(&numbers) && !buffer_failed(&strings) && !buffer_failed(&bytes));
	judge(buffer_view(&numbers), buffer_view(&strings), &judged);
	assert_int_equal(judged.report.reasons_count, 100);
	assert_string_equal(judged.report.reasons[COMPAT_REASONS_MAX - 1].path, "R.f19");
	judged_done(&judged);
	judge(buffer_view(&bytes), buffer_view(&strings), &judged);
	assert_int_equal(judged.report.reasons_count, 0);
	assert_int_equal(judged.report.warnings_count, 100);
	judged_done(&judged);
	buffer_done(&numbers);
	buffer_done(&strings);
	buffer_done(&bytes);
}

#define CHAIN      1000
#define CHAIN_TEXT "{\"type\":\"record\",\"name\":\"R%d\",\"fields\":[{\"name\":\"%s\",\"type\":"

/* Records R0, R1, ..., one inside an array of the other, named flat so that the text is not deep. */
static void chain(struct buffer *text, const char *leaf)
{
	buffer_init(text, SCHEMA_TEXT_MAX);
	buffer_append_text(text, "[");
	for (int i = 0; i < CHAIN; i++) {
		buffer_printf(text, CHAIN_TEXT, i, "next");
		if (i == 0)
			buffer_printf(text, "\"%s\"}]}", leaf);
		else
			buffer_printf(text, "\"R%d\"}]}", i - 1);
		buffer_append_text(text, i < CHAIN - 1 ? "," : "]");
	}
}

/* The fault is 1,000 records deep when it is come upon from the last; each pair is visited once all the same. */
static void test_deep_and_quick(void **state)
{
	struct buffer writer, reader;
	struct judged judged;
	clock_t start = clock(); /* of the processor: others may be busy */

	(void)state;
	chain(&writer, "int");
	chain(&reader, "string");
	judge(buffer_view(&writer), buffer_view(&reader), &judged);
	assert_int_equal(judged.report.reasons_count, 1);
	assert_true(judged.report.never);
	assert_string_equal(judged.report.reasons[0].path, "union.next");
	assert_true(clock() - start < 5 * CLOCKS_PER_SEC);
	judged_done(&judged);
	buffer_done(&writer);
	buffer_done(&reader);
}

static void test_long_paths_are_cut(void **state)
{
	struct buffer writer, reader;
	struct judged judged;

	(void)state;
	for (int side = 0; side < 2; side++) {
		struct buffer *text = side ? &reader : &writer;
		buffer_init(text, SCHEMA_TEXT_MAX);
		for (int i = 0; i < 25; i++)
			buffer_printf(text, CHAIN_TEXT, i,
			              "a_name_that_is_rather_long_so_that_the_whole_path_does_not_fit");
		buffer_append_text(text, side ? "\"string\"" : "\"int\"");
		for (int i = 0; i < 25; i++)
			buffer_append_text(text, "}]}");
	}
	judge(buffer_view(&writer), buffer_view(&reader), &judged);
	assert_int_equal(judged.report.reasons_count, 1);
	assert_int_equal(strncmp(judged.report.reasons[0].path, "R0.a_name_that", 14), 0);
	assert_true(strlen(judged.report.reasons[0].path) > 100);
	judged_done(&judged);
	buffer_done(&writer);
	buffer_done(&reader);
}

static void test_modes(void **state)
{
	static const struct {
		const char *name;
		bool back_last, back_old, forth_last, forth_old;
	} wanted[] = {
		{ "NONE", false, false, false, false },
		{ "BACKWARD", true, false, false, false },
		{ "BACKWARD_TRANSITIVE", true, true, false, false },
		{ "FORWARD", false, false, true, false },
		{ "FORWARD_TRANSITIVE", false, false, true, true },
		{ "FULL", true, false, true, false },
		{ "FULL_TRANSITIVE", true, true, true, true },
	};
	enum compat_mode mode;

	(void)state;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
		assert_true(compat_mode_parse(view_of(wanted[i].name), &mode));
		assert_string_equal(compat_mode_name(mode), wanted[i].name);
		assert_int_equal(compat_mode_backward(mode, true), wanted[i].back_last);
		assert_int_equal(compat_mode_backward(mode, false), wanted[i].back_old);
		assert_int_equal(compat_mode_forward(mode, true), wanted[i].forth_last);
		assert_int_equal(compat_mode_forward(mode, false), wanted[i].forth_old);
	}
	assert_true(compat_mode_parse(view_of("full_transitive"), &mode) && mode == COMPAT_FULL_TRANSITIVE);
	assert_false(compat_mode_parse(view_of("FULLY"), &mode));
	assert_false(compat_mode_parse(view_of("FUL"), &mode));
	assert_false(compat_mode_parse(view_of(""), &mode));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_our_records),
		cmocka_unit_test(test_all_are_counted),
		cmocka_unit_test(test_deep_and_quick),
		cmocka_unit_test(test_long_paths_are_cut),
		cmocka_unit_test(test_modes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
