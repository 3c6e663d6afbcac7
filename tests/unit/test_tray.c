// links: worker core
// The tray between intake and a relay: what is given in which version, and what is thrown away when.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/clock.h"
#include "worker/tray.h"

#include <stdio.h>
#include <string.h>

#define CEILING ((size_t)4096)

static struct tray tray;
static int64_t now_ms;

int64_t clock_mono_ms(void)
{
	return now_ms;
}

int64_t clock_real_us(void)
{
	return now_ms * 1000;
}

static struct uuid id_of(int number)
{
	struct uuid id = { { 0 } };

	id.bytes[0] = (uint8_t)(number * 37);
	id.bytes[14] = (uint8_t)(number >> 8);
	id.bytes[15] = (uint8_t)number;
	return id;
}

static void put_value(int number, int64_t version, struct view value)
{
	struct tray_event event = { .id = id_of(number),
		                        .version = version,
		                        .at = version * 2,
		                        .value = value,
		                        .traceparent = VIEW_LITERAL("parent") };

	tray_put(&tray, &event);
}

static void put(int number, int64_t version)
{
	char text[64];

	snprintf(text, sizeof(text), "event %d in version %d", number, (int)version);
	put_value(number, version, view_of(text));
}

static bool takes(int number, int64_t version)
{
	struct uuid id = id_of(number);
	const struct tray_event *event = tray_take(&tray, &id, version);
	char text[64];

	if (event == NULL)
		return false;
	snprintf(text, sizeof(text), "event %d in version %d", number, (int)version);
	assert_true(view_equal_text(event->value, text));
	assert_true(view_equal_text(event->traceparent, "parent"));
	assert_true(view_is_null(event->tracestate));
	assert_int_equal(uuid_compare(&event->id, &id), 0);
	assert_int_equal(event->version, version);
	assert_int_equal(event->at, version * 2);
	return true;
}

static int setup(void **state)
{
	(void)state;
	now_ms = 1000000;
	tray_init(&tray, CEILING);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	tray_clear(&tray);
	tray_wash(&tray);
	assert_int_equal(tray.bytes, 0);
	tray_done(&tray);
	return 0;
}

static void what_is_there_is_given_once(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++)
		put(i, 100 + i);
	for (int i = 19; i >= 0; i -= 2)
		assert_true(takes(i, 100 + i));
	for (int i = 0; i < 20; i++)
		assert_int_equal(takes(i, 100 + i), i % 2 == 0);
	assert_false(takes(20, 120));
}

static void what_was_taken_is_good_until_it_is_washed(void **state)
{
	(void)state;
	put(1, 5);
	struct uuid id = id_of(1);
	const struct tray_event *event = tray_take(&tray, &id, 5);
	assert_non_null(event);
	tray_clear(&tray);
	put(1, 6);
	assert_true(view_equal_text(event->value, "event 1 in version 5"));
	tray_wash(&tray);
	assert_true(takes(1, 6));
}

/* A hit may only be the version that the database has. */
static void no_other_version_is_given(void **state)
{
	(void)state;
	put(1, 5);
	put(2, 5);
	assert_false(takes(1, 6)); /* the database is further: what is here is over */
	assert_false(takes(1, 5));
	assert_false(takes(2, 4)); /* the relay's snapshot is older: the next one may ask for it */
	assert_true(takes(2, 5));
}

static void the_later_one_takes_the_place(void **state)
{
	(void)state;
	put(1, 9);
	put(1, 5); /* a database that went back, and was filled again */
	assert_false(takes(1, 4));
	assert_true(takes(1, 5));
	assert_false(takes(1, 9));
}

static void nothing_lies_there_for_long(void **state)
{
	(void)state;
	put(1, 5);
	put(2, 5);
	now_ms += TRAY_MS - 1;
	assert_true(takes(1, 5));
	now_ms += 1;
	assert_false(takes(2, 5));
	put(3, 5);
	now_ms += TRAY_MS;
	tray_wash(&tray);
	size_t one = tray.bytes;
	put(4, 5); /* room is made of what is too old */
	assert_int_equal(tray.bytes, one);
}

static void a_full_tray_keeps_what_it_has(void **state)
{
	uint8_t large[1000];

	(void)state;
	memset(large, 7, sizeof(large));
	put(1, 5);
	for (int i = 2; i < 10; i++)
		put_value(i, 5, (struct view){ large, sizeof(large) });
	assert_true(tray.bytes <= CEILING);
	struct uuid second = id_of(2), last = id_of(9);
	assert_null(tray_take(&tray, &last, 5));
	assert_non_null(tray_take(&tray, &second, 5)); /* and counts until it is washed */
	put_value(9, 5, (struct view){ large, sizeof(large) });
	assert_null(tray_take(&tray, &last, 5));
	tray_wash(&tray);
	put_value(9, 5, (struct view){ large, sizeof(large) });
	assert_non_null(tray_take(&tray, &last, 5));
	assert_true(takes(1, 5));
}

/* One that has no room still takes what is there of its id with it: that is over. */
static void what_has_no_room_is_not_there_in_an_older_version(void **state)
{
	static uint8_t huge[CEILING];

	(void)state;
	put(1, 5);
	put_value(1, 6, (struct view){ huge, sizeof(huge) });
	assert_false(takes(1, 5));
	assert_int_equal(tray.bytes, 0);
}

static void what_nobody_asked_for_is_swept(void **state)
{
	(void)state;
	put(1, 5);
	put(2, 5);
	uint64_t mark = tray_mark(&tray);
	put(3, 5);
	put(1, 6); /* anew: it is of the next look */
	tray_sweep(&tray, mark);
	assert_false(takes(2, 5));
	assert_true(takes(3, 5));
	assert_true(takes(1, 6));
}

static void nothing_is_left_when_it_is_cleared(void **state)
{
	(void)state;
	for (int i = 0; i < 20; i++)
		put(i, 5);
	tray_clear(&tray);
	for (int i = 0; i < 20; i++)
		assert_false(takes(i, 5));
	assert_int_equal(tray.bytes, 0);
}

static void note(int number)
{
	const struct fresh fresh = { id_of(number), number * 10 };

	tray_note(&tray, &fresh);
}

/* Is what was noted just those, from first on? */
static bool has_noted(int first, int count)
{
	struct fresh noted[TRAY_FRESH_MAX];

	if (tray_noted(&tray, noted) != (size_t)count)
		return false;
	for (int i = 0; i < count; i++) {
		struct uuid id = id_of(first + i);
		assert_memory_equal(&noted[i].id, &id, sizeof(id));
		assert_int_equal(noted[i].appended_at, (first + i) * 10);
	}
	return true;
}

static void a_few_decisions_are_noted_and_told_once(void **state)
{
	(void)state;
	assert_true(has_noted(0, 0));
	note(1);
	note(2);
	assert_true(has_noted(1, 2));
	assert_true(has_noted(0, 0));
	for (int i = 0; i < TRAY_FRESH_MAX; i++)
		note(i);
	assert_true(has_noted(0, TRAY_FRESH_MAX));
	for (int i = 0; i < 3 * TRAY_FRESH_MAX; i++) /* a backlog is not told by name */
		note(i);
	assert_true(has_noted(0, 0));
	note(7);
	assert_true(has_noted(7, 1));
	note(7);
	tray_clear(&tray);
	assert_true(has_noted(0, 0));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_there_is_given_once),
		TEST(what_was_taken_is_good_until_it_is_washed),
		TEST(no_other_version_is_given),
		TEST(the_later_one_takes_the_place),
		TEST(nothing_lies_there_for_long),
		TEST(a_full_tray_keeps_what_it_has),
		TEST(what_has_no_room_is_not_there_in_an_older_version),
		TEST(what_nobody_asked_for_is_swept),
		TEST(nothing_is_left_when_it_is_cleared),
		TEST(a_few_decisions_are_noted_and_told_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
