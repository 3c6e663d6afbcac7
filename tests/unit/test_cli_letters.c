// links: cli schemas store producer consumer config core
/* test_cli_letters.c - dead letters as they are read and chosen; times as people give them; texts that were seen. */
#include "test_cli_output.h"

#include "cli/letter.h"
#include "cli/moment.h"
#include "cli/redrive.h"
#include "cli/text_set.h"

#include "core/clock.h"

#include <inttypes.h>
#include <string.h>

/* ---- letters ---- */

static const struct coordinates here = { "dead", 3, 1042, 1700000001000000 };

static struct header error_headers[] = {
	{ "fermata.error.code", { (const uint8_t *)"invalid", 7 } },
	{ "fermata.error.reason", { (const uint8_t *)"suspend_seq: it is 0", 20 } },
	{ "fermata.error.topic", { (const uint8_t *)"suspends", 8 } },
	{ "fermata.error.partition", { (const uint8_t *)"4", 1 } },
	{ "fermata.error.offset", { (const uint8_t *)"99", 2 } },
	{ "fermata.error.timestamp", { (const uint8_t *)"1700000000123", 13 } },
	{ "fermata.error.stage", { (const uint8_t *)"suspend", 7 } },
};

#define OWN (sizeof(error_headers) / sizeof(error_headers[0]))

/* A letter with our headers behind those given; one of ours may be another text, or (NULL) null. */
static struct letter a_letter(const struct header *before, size_t len, const char *name, const char *text)
{
	static struct header headers[32];
	struct letter letter;

	for (size_t i = 0; i < len; i++)
		headers[i] = before[i];
	for (size_t i = 0; i < OWN; i++) {
		headers[len + i] = error_headers[i];
		if (name != NULL && !strcmp(name, error_headers[i].name))
			headers[len + i].value = view_of(text);
	}
	letter_read(&here, view_of("key"), view_of("value"), headers, len + OWN, &letter);
	return letter;
}

static void reads_what_the_worker_wrote(void **state)
{
	char origin[LETTER_ORIGIN_MAX];
	struct letter letter = a_letter(NULL, 0, NULL, NULL);

	(void)state;
	assert_true(letter.known);
	assert_true(view_equal_text(letter.code, "invalid"));
	assert_true(view_equal_text(letter.stage, "suspend"));
	assert_int_equal(letter.partition, 4);
	assert_int_equal(letter.offset, 99);
	assert_int_equal(letter.redrives, 0);
	assert_string_equal(letter_origin(&letter, origin), "suspends:4:99@1700000000123");
	letter = a_letter(NULL, 0, "fermata.error.timestamp", "-1");
	assert_true(letter.known);
	assert_string_equal(letter_origin(&letter, origin), "suspends:4:99@-1");
}

static void what_is_not_well_formed_is_not_known(void **state)
{
	static const char *const bad[][2] = {
		{ "fermata.error.code", "" },        { "fermata.error.code", NULL },
		{ "fermata.error.code", "\xff" },    { "fermata.error.reason", NULL },
		{ "fermata.error.topic", "" },       { "fermata.error.topic", "a b" },
		{ "fermata.error.topic", "a/b" },    { "fermata.error.topic", "a:b" },
		{ "fermata.error.partition", "-1" }, { "fermata.error.partition", "2147483648" },
		{ "fermata.error.partition", "1x" }, { "fermata.error.partition", "+1" },
		{ "fermata.error.offset", "" },      { "fermata.error.offset", "99999999999999999999" },
		{ "fermata.error.timestamp", "-2" }, { "fermata.error.timestamp", "1.5" },
		{ "fermata.error.stage", "resume" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct letter letter = a_letter(NULL, 0, bad[i][0], bad[i][1]);
		assert_false(letter.known);
		assert_true(view_is_null(letter.code));
		assert_int_equal(letter.offset, -1);
	}
}

static void the_last_header_counts(void **state)
{
	const struct header before[] = { { "fermata.error.code", view_of("old") },
		                             { "fermata.error.offset", view_of("1") },
		                             { LETTER_REDRIVES_HEADER, view_of("1") },
		                             { LETTER_REDRIVES_HEADER, view_of("2") } };
	struct letter letter = a_letter(before, 4, NULL, NULL);

	(void)state;
	assert_true(view_equal_text(letter.code, "invalid"));
	assert_int_equal(letter.offset, 99);
	assert_int_equal(letter.redrives, 2);
}

static void a_count_that_is_none(void **state)
{
	static const char *const bad[] = { "", "-1", "1x", "2147483648", " 1", "0x1" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct header before[] = { { LETTER_REDRIVES_HEADER, view_of(bad[i]) } };
		assert_int_equal(a_letter(before, 1, NULL, NULL).redrives, -1);
	}
	const struct header null[] = { { LETTER_REDRIVES_HEADER, VIEW_NULL } };
	assert_int_equal(a_letter(null, 1, NULL, NULL).redrives, -1);
}

static void headers_go_back_as_they_came(void **state)
{
	const struct header before[] = { { "trace", { (const uint8_t *)"\0\xff", 2 } },
		                             { "null", VIEW_NULL },
		                             { "fermata.error.code", view_of("old") },
		                             { LETTER_REDRIVES_HEADER, view_of("7") },
		                             { "fermata.errors", view_of("x") },
		                             { "null", view_of("") } };
	struct letter letter = a_letter(before, 6, NULL, NULL);
	struct arena *arena = arena_new(65536);
	assert_non_null(arena);
	struct header *back;
	struct error error;
	size_t len;

	(void)state;
	assert_int_equal(letter_headers_back(&letter, arena, &back, &len, &error), FATE_OK);
	assert_int_equal(len, 5);
	assert_string_equal(back[0].name, "trace");
	assert_int_equal(back[0].value.len, 2);
	assert_true(view_is_null(back[1].value));
	assert_string_equal(back[2].name, "fermata.errors");
	assert_false(view_is_null(back[3].value));
	assert_string_equal(back[4].name, LETTER_REDRIVES_HEADER);
	assert_true(view_equal_text(back[4].value, "8"));
	arena_free(arena);
}

static void framings(void **state)
{
	static const struct {
		const char *value;
		size_t len;
		const char *text;
	} cases[] = {
		{ "", 0, "empty" },
		{ "\xc3\x01\x01\x23\x45\x67\x89\xab\xcd\xef", 10, "single object, fingerprint 0123456789abcdef" },
		{ "\xc3\x01\x01\x23\x45\x67\x89\xab\xcd", 9, "none that is known" },
		{ "\x00\x00\x00\x01\x02", 5, "Confluent, schema id 258" },
		{ "\x00\xff\xff\xff\xff\x00", 6, "Confluent, schema id 4294967295" },
		{ "\x00\x00\x00\x01", 4, "none that is known" },
		{ "{\"a\":1}", 7, "none that is known (it begins as JSON does)" },
		{ "x", 1, "none that is known" },
	};
	char text[96];

	(void)state;
	assert_string_equal(letter_framing(VIEW_NULL, text, sizeof(text)), "null");
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct view value = { (const uint8_t *)cases[i].value, cases[i].len };
		assert_string_equal(letter_framing(value, text, sizeof(text)), cases[i].text);
	}
}

static void every_code_has_its_advice(void **state)
{
	const char *all;
	const char *unknown = letter_change_first(view_of("code_of_tomorrow"));

	(void)state;
	assert_false(letter_code_is_known("code_of_tomorrow", &all));
	for (int code = ERR_FRAMING; code <= ERR_REJECTED_BY_STORE; code++) {
		const char *name = error_code_name((enum error_code)code);
		assert_true(letter_code_is_known(name, &all));
		assert_non_null(strstr(all, name));
		assert_string_not_equal(letter_change_first(view_of(name)), unknown);
	}
}

static void places(void **state)
{
	static const char *const bad[] = { "",    ":",    "1",    "1:",           ":1",   "a:1",
		                               "1:a", "-1:1", "1:-1", "2147483648:1", "1:1:1" };
	struct letter_place place;
	struct error error;

	(void)state;
	assert_int_equal(letter_place_parse("3:1042", &place, &error), FATE_OK);
	assert_int_equal(place.partition, 3);
	assert_int_equal(place.offset, 1042);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(letter_place_parse(bad[i], &place, &error), FATE_FATAL);
		assert_int_equal(error.code, ERR_USAGE);
	}
}

/* ---- what is to be done with one ---- */

struct chosen {
	enum redrive_choice choice;
	struct view topic;
	char why[300];
};

static struct chosen choose(const struct redrive_rules *rules, const struct letter *letter)
{
	struct chosen chosen = { .topic = VIEW_NULL };

	chosen.choice = redrive_choose(rules, letter, &chosen.topic, chosen.why, sizeof(chosen.why));
	return chosen;
}

static void chooses(void **state)
{
	struct text_set done;
	struct error error;
	char origin[LETTER_ORIGIN_MAX];
	struct letter letter = a_letter(NULL, 0, NULL, NULL);
	struct redrive_rules rules = { .suspends = "suspends",
		                           .approvals = "approvals",
		                           .max_redrives = 3,
		                           .record_bytes = 100,
		                           .done = &done };

	(void)state;
	assert_int_equal(text_set_init(&done, &error), FATE_OK);
	struct chosen chosen = choose(&rules, &letter);
	assert_int_equal(chosen.choice, REDRIVE_SEND);
	assert_true(view_equal_text(chosen.topic, "suspends"));
	rules.to = "elsewhere";
	assert_true(view_equal_text(choose(&rules, &letter).topic, "elsewhere"));
	rules.suspends = "others";
	assert_int_equal(choose(&rules, &letter).choice, REDRIVE_SEND);
	rules.to = NULL;
	assert_int_equal(choose(&rules, &letter).choice, REDRIVE_LEAVE);
	rules.suspends = "suspends";
	rules.record_bytes = 4;
	assert_int_equal(choose(&rules, &letter).choice, REDRIVE_LEAVE);
	rules.record_bytes = 5;
	letter.redrives = 2;
	assert_int_equal(choose(&rules, &letter).choice, REDRIVE_SEND);
	letter.redrives = 3;
	chosen = choose(&rules, &letter);
	assert_int_equal(chosen.choice, REDRIVE_LEAVE);
	assert_non_null(strstr(chosen.why, "3 times"));
	letter.redrives = -1;
	assert_int_equal(choose(&rules, &letter).choice, REDRIVE_LEAVE);
	letter.redrives = 0;
	assert_int_equal(text_set_add(&done, view_of(letter_origin(&letter, origin)), NULL, &error), FATE_OK);
	assert_int_equal(choose(&rules, &letter).choice, REDRIVE_DONE);
	rules.again = true;
	assert_int_equal(choose(&rules, &letter).choice, REDRIVE_SEND);
	letter.known = false;
	assert_int_equal(choose(&rules, &letter).choice, REDRIVE_LEAVE);
	text_set_done(&done);
}

static void what_was_emptied_cannot_go(void **state)
{
	struct text_set done;
	struct error error;
	struct redrive_rules rules = { .suspends = "suspends",
		                           .approvals = "approvals",
		                           .max_redrives = 3,
		                           .record_bytes = 100,
		                           .done = &done };
	struct letter letter = a_letter(NULL, 0, "fermata.error.code", "too_large");

	(void)state;
	assert_int_equal(text_set_init(&done, &error), FATE_OK);
	assert_int_equal(choose(&rules, &letter).choice, REDRIVE_SEND);
	letter.value = view_of("");
	assert_int_equal(choose(&rules, &letter).choice, REDRIVE_LEAVE);
	letter.value = VIEW_NULL;
	assert_int_equal(choose(&rules, &letter).choice, REDRIVE_LEAVE);
	letter = a_letter(NULL, 0, "fermata.error.code", "framing");
	letter.value = view_of("");
	assert_int_equal(choose(&rules, &letter).choice, REDRIVE_SEND);
	text_set_done(&done);
}

/* ---- times ---- */

#define NOW INT64_C(1700000000000000)

static void moments(void **state)
{
	static const struct {
		const char *text;
		int64_t us;
	} good[] = {
		{ "0s", NOW },
		{ "90s", NOW - INT64_C(90000000) },
		{ "15m", NOW - INT64_C(900000000) },
		{ "2h", NOW - INT64_C(7200000000) },
		{ "3d", NOW - INT64_C(259200000000) },
		{ "1w", NOW - INT64_C(604800000000) },
		{ "2023-11-14T22:13:20Z", NOW },
		{ "2023-11-14 22:13:20z", NOW },
		{ "2023-11-14T22:13:20.000001Z", NOW + 1 },
		{ "2023-11-14T22:13:20.5Z", NOW + 500000 },
		{ "2023-11-14T23:43:20+01:30", NOW },
		{ "2023-11-14T20:13:20-02:00", NOW },
		{ "2023-11-14T22:13Z", NOW - INT64_C(20000000) },
		{ "2024-02-29T00:00Z", INT64_C(1709164800000000) },
		{ "2023-11-14", INT64_C(1699920000000000) },
		{ "2023-11-14T22:13:20", NOW },
	};

	(void)state;
	assert_int_equal(setenv("TZ", "UTC0", 1), 0);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		int64_t us = 0;
		struct error error;
		if (moment_parse("since", good[i].text, NOW, &us, &error) != FATE_OK || us != good[i].us)
			fail_msg("%s is %" PRId64 ", not %" PRId64, good[i].text, us, good[i].us);
	}
}

static void no_moments(void **state)
{
	static const char *const bad[] = { "",
		                               "yesterday",
		                               "2",
		                               "h",
		                               "2x",
		                               "-2h",
		                               "2hh",
		                               "9999999999999s",
		                               "99999999999w",
		                               "2023-11-14T",
		                               "2023-13-01",
		                               "2023-02-29",
		                               "2023-11-14T24:00Z",
		                               "2023-11-14T22:60Z",
		                               "2023-11-14T22:13:60Z",
		                               "2023-11-14T22:13:20.Z",
		                               "2023-11-14T22:13:20.1234567Z",
		                               "2023-11-14T22:13ZZ",
		                               "2023-11-14T22:13+1",
		                               "2023-11-14T22:13+24:00",
		                               "2023-11-14Z",
		                               "23-11-14" };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int64_t us;
		struct error error;
		if (moment_parse("since", bad[i], NOW, &us, &error) != FATE_FATAL || error.code != ERR_USAGE)
			fail_msg("%s is taken", bad[i]);
	}
}

/* ---- texts that were seen ---- */

static void remembers_texts(void **state)
{
	struct text_set set;
	struct error error;
	char text[32];
	bool fresh;

	(void)state;
	assert_int_equal(text_set_init(&set, &error), FATE_OK);
	for (int round = 0; round < 2; round++)
		for (int i = 0; i < 5000; i++) {
			snprintf(text, sizeof(text), "topic:%d:%d", i % 7, i);
			assert_int_equal(text_set_has(&set, view_of(text)), round == 1);
			assert_int_equal(text_set_add(&set, view_of(text), &fresh, &error), FATE_OK);
			assert_int_equal(fresh, round == 0);
		}
	assert_false(text_set_has(&set, view_of("")));
	assert_int_equal(text_set_add(&set, view_of(""), &fresh, &error), FATE_OK);
	assert_true(fresh);
	assert_true(text_set_has(&set, view_of("")));
	text_set_done(&set);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_what_the_worker_wrote),
		cmocka_unit_test(what_is_not_well_formed_is_not_known),
		cmocka_unit_test(the_last_header_counts),
		cmocka_unit_test(a_count_that_is_none),
		cmocka_unit_test(headers_go_back_as_they_came),
		cmocka_unit_test(framings),
		cmocka_unit_test(every_code_has_its_advice),
		cmocka_unit_test(places),
		cmocka_unit_test(chooses),
		cmocka_unit_test(what_was_emptied_cannot_go),
		cmocka_unit_test(moments),
		cmocka_unit_test(no_moments),
		cmocka_unit_test(remembers_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
