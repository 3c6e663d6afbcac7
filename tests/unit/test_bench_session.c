// links: bench schemas core
/* What a measurement puts on the topics: sessions of the size that was asked for, that read and compress as chat does. */
#include "bench/bench.h"
#include "bench/session.h"
#include "core/json_scan.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct made {
	struct session_writer *writer;
	struct buffer value;
	struct uuid id;
};

static void make(struct made *made, size_t size, uint32_t number)
{
	struct error error;

	assert_int_equal(session_writer_new(&made->writer, "cafe", size, &error), FATE_OK);
	buffer_init(&made->value, 2 * SESSION_BYTES_MAX);
	assert_int_equal(session_suspend(made->writer, number, &made->value, &made->id, &error), FATE_OK);
}

static void done(struct made *made)
{
	session_writer_free(made->writer);
	buffer_done(&made->value);
}

static void read_event(const struct made *made, struct arena *arena, struct suspend_event *ret_event)
{
	struct codec_settings settings = { .strict_boundary = true, .record_bytes = 2 * SESSION_BYTES_MAX };
	struct codec *codec;
	struct view body;
	struct error error;

	assert_int_equal(codec_new(&codec, &settings, &error), FATE_OK);
	if (codec_take_suspend(codec, buffer_view(&made->value), arena, ret_event, &body, &error) != FATE_OK)
		fail_msg("%s", error.message);
	codec_free(codec);
}

static void sizes_are_as_asked_for(void **state)
{
	static const size_t sizes[] = { 2 << 10, 32 << 10, 512 << 10, SESSION_BYTES_MIN, SESSION_BYTES_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (uint32_t number = 0; number < 5; number++) {
			struct made made;
			make(&made, sizes[i], number);
			assert_in_range(made.value.len, sizes[i] * 85 / 100, sizes[i] * 115 / 100);
			done(&made);
		}
	}
}

/* The strictest boundary takes it, its calls have their answers, and their arguments are JSON. */
static void a_session_is_a_chat(void **state)
{
	struct arena *arena = arena_new((size_t)16 << 20);
	struct suspend_event event;
	size_t calls = 0, roles[4] = { 0 };
	struct made made;

	(void)state;
	assert_non_null(arena);
	make(&made, 32 << 10, 7);
	read_event(&made, arena, &event);
	for (size_t i = 0; i < event.history_len; i++) {
		roles[event.history[i].role]++;
		for (size_t j = 0; j < event.history[i].tool_calls_len; j++, calls++) {
			assert_true(json_scan(event.history[i].tool_calls[j].arguments));
			assert_true(view_equal(event.history[i + 1].tool_call_id, event.history[i].tool_calls[j].id));
		}
	}
	assert_true(calls > 5 && roles[ROLE_USER] > 3 && roles[ROLE_AGENT] > 3 && roles[ROLE_TOOL] == calls);
	assert_int_equal(roles[ROLE_SYSTEM], 1);
	arena_free(arena);
	done(&made);
}

/* The text of a session is the same each time, that of another is another; ids are new. */
static void text_comes_again_and_ids_do_not(void **state)
{
	struct arena *arena = arena_new((size_t)16 << 20);
	struct suspend_event first, second, other;
	struct made a, b, c;

	(void)state;
	assert_non_null(arena);
	make(&a, 2 << 10, 3);
	make(&b, 2 << 10, 3);
	make(&c, 2 << 10, 4);
	read_event(&a, arena, &first);
	read_event(&b, arena, &second);
	read_event(&c, arena, &other);
	assert_true(view_equal(first.history[1].content, second.history[1].content));
	assert_false(view_equal(first.history[1].content, other.history[1].content));
	assert_true(view_equal(first.session_id, second.session_id));
	assert_int_not_equal(uuid_compare(&a.id, &b.id), 0);
	arena_free(arena);
	done(&a);
	done(&b);
	done(&c);
}

/* A session that suspends again and again has a longer history each time, and all of it at the end. */
static void a_session_grows(void **state)
{
	struct arena *arena = arena_new((size_t)64 << 20);
	struct suspend_event event;
	size_t last = 0;
	struct error error;
	struct made made;

	(void)state;
	assert_non_null(arena);
	make(&made, 32 << 10, 3);
	size_t whole = made.value.len;
	for (uint32_t seq = 1; seq <= 20; seq++) {
		assert_int_equal(session_suspend_grown(made.writer, 3, seq, 20, &made.value, &made.id, &error),
		                 FATE_OK);
		read_event(&made, arena, &event);
		assert_int_equal(event.suspend_seq, seq);
		assert_true(made.value.len > last);
		last = made.value.len;
	}
	assert_in_range(last, whole - 8, whole + 8);
	arena_free(arena);
	done(&made);
}

static void a_session_is_known_by_its_id(void **state)
{
	struct made made;
	uint32_t number = 0;

	(void)state;
	make(&made, 2 << 10, 0);
	assert_true(session_number(made.writer, VIEW_LITERAL("bench-cafe-0000000042"), &number));
	assert_int_equal(number, 42);
	assert_true(session_number(made.writer, VIEW_LITERAL("bench-cafe-4294967295"), &number));
	assert_false(session_number(made.writer, VIEW_LITERAL("bench-cafe-4294967296"), &number));
	assert_false(session_number(made.writer, VIEW_LITERAL("bench-cafe-42"), &number));
	assert_false(session_number(made.writer, VIEW_LITERAL("bench-beef-0000000042"), &number));
	assert_false(session_number(made.writer, VIEW_LITERAL("bench-cafe-00000000-2"), &number));
	assert_false(session_number(made.writer, VIEW_NULL, &number));
	done(&made);
}

static void goals_are_of_the_ratio_or_of_the_value(void **state)
{
	struct bench_figure figure = { .value = 80, .limit = 100, .goal = 0.8 };

	(void)state;
	assert_true(bench_goal_met(&figure));
	figure.value = 79;
	assert_false(bench_goal_met(&figure));
	figure.goal_at_most = true;
	assert_true(bench_goal_met(&figure));
	figure.goal_of_value = true;
	assert_false(bench_goal_met(&figure));
	figure.goal = 0;
	assert_false(bench_goal_met(&figure));
	figure.limit = 0;
	assert_true(bench_ratio(&figure) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes_are_as_asked_for),
		cmocka_unit_test(a_session_is_a_chat),
		cmocka_unit_test(text_comes_again_and_ids_do_not),
		cmocka_unit_test(a_session_grows),
		cmocka_unit_test(a_session_is_known_by_its_id),
		cmocka_unit_test(goals_are_of_the_ratio_or_of_the_value),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
