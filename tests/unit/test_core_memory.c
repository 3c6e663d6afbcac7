// links: core
// Buffers and arenas: ceilings, sticky failure, zeroed and wiped memory.
#include "core/memory.h"

#include <setjmp.h>
#include <stdalign.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static bool all_zero(const uint8_t *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (data[i] != 0)
			return false;
	return true;
}

static void a_buffer_grows(void **state)
{
	(void)state;
	struct buffer buffer;

	buffer_init(&buffer, 100000);
	assert_false(view_is_null(buffer_view(&buffer)));
	assert_int_equal(buffer_view(&buffer).len, 0);
	for (int i = 0; i < 10000; i++)
		buffer_printf(&buffer, "%04d,", i);
	assert_false(buffer_failed(&buffer));
	assert_int_equal(buffer.len, 50000);
	assert_memory_equal(buffer.data + 5 * 1234, "1234,", 5);
	buffer_append_text(&buffer, "text");
	buffer_append_byte(&buffer, '!');
	buffer_append_view(&buffer, VIEW_LITERAL("\0view"));
	buffer_append_view(&buffer, VIEW_NULL);
	assert_memory_equal(buffer.data + 50000, "text!\0view", 10);
	assert_int_equal(buffer.len, 50010);
	buffer_done(&buffer);
	assert_null(buffer.data);
}

static void the_ceiling_is_exact(void **state)
{
	(void)state;
	for (size_t ceiling = 0; ceiling < 600; ceiling += 37) {
		struct buffer buffer;
		buffer_init(&buffer, ceiling);
		for (size_t i = 0; i < ceiling; i++)
			buffer_append_byte(&buffer, 'a');
		assert_false(buffer_failed(&buffer));
		buffer_append(&buffer, "", 0);
		assert_false(buffer_failed(&buffer));
		buffer_append_byte(&buffer, 'b');
		assert_true(buffer_failed(&buffer));
		assert_int_equal(buffer.len, ceiling);
		assert_true(buffer.cap <= ceiling);
		buffer_done(&buffer);
	}
}

static void a_formatted_text_may_end_at_the_ceiling(void **state)
{
	(void)state;
	struct buffer buffer;

	buffer_init(&buffer, 5);
	buffer_printf(&buffer, "%d", 12345);
	assert_false(buffer_failed(&buffer));
	assert_memory_equal(buffer.data, "12345", 5);
	buffer_printf(&buffer, "%s", "");
	assert_false(buffer_failed(&buffer));
	buffer_printf(&buffer, "%d", 6);
	assert_true(buffer_failed(&buffer));
	buffer_done(&buffer);
}

static void failure_is_sticky_until_reset(void **state)
{
	(void)state;
	struct buffer buffer;

	buffer_init(&buffer, 8);
	buffer_append_text(&buffer, "1234");
	buffer_append_text(&buffer, "too long");
	buffer_append_text(&buffer, "56"); /* would fit, but what it belongs to is lost */
	buffer_printf(&buffer, "7");
	assert_null(buffer_reserve(&buffer, 1));
	assert_true(buffer_failed(&buffer));
	assert_memory_equal(buffer.data, "1234", 4);
	assert_int_equal(buffer.len, 4);
	buffer_reset(&buffer);
	assert_false(buffer_failed(&buffer));
	assert_int_equal(buffer.len, 0);
	buffer_append_text(&buffer, "12345678");
	assert_false(buffer_failed(&buffer));
	buffer_done(&buffer);
}

static void lengths_that_overflow_do_not_fit(void **state)
{
	(void)state;
	struct buffer buffer;

	buffer_init(&buffer, SIZE_MAX);
	buffer_append_text(&buffer, "a");
	assert_null(buffer_reserve(&buffer, SIZE_MAX));
	assert_true(buffer_failed(&buffer));
	buffer_reset(&buffer);
	assert_null(buffer_reserve(&buffer, SIZE_MAX)); /* within the ceiling, beyond the machine */
	assert_true(buffer_failed(&buffer));
	buffer_done(&buffer);
}

static void a_reset_wipes_what_was_reserved_too(void **state)
{
	(void)state;
	struct buffer buffer;

	buffer_init(&buffer, 1000);
	buffer_append_text(&buffer, "secret");
	uint8_t *room = buffer_reserve(&buffer, 100);
	assert_non_null(room);
	memset(room, 's', 100); /* a writer that then gives up */
	uint8_t *data = buffer.data;
	buffer_reset(&buffer);
	assert_ptr_equal(buffer.data, data);
	assert_true(all_zero(data, 106));
	buffer_done(&buffer);
}

static void an_arena_hands_out_zeroed_aligned_memory(void **state)
{
	(void)state;
	struct arena *arena = arena_new((size_t)64 * 1024 * 1024);
	assert_non_null(arena);

	assert_non_null(arena);
	for (size_t round = 0; round < 3; round++) {
		for (size_t len = 0; len < 3000; len += 7) {
			uint8_t *data = arena_alloc(arena, len);
			assert_non_null(data);
			assert_int_equal((uintptr_t)data % alignof(max_align_t), 0);
			assert_true(all_zero(data, len));
			memset(data, 0xA5, len);
			assert_non_null(arena_copy(arena, VIEW_LITERAL("x")).data); /* pushes the next one askew */
		}
		arena_reset(arena);
		assert_int_equal(arena_used(arena), 0);
	}
	arena_free(arena);
}

static void large_and_small_ones_mixed(void **state)
{
	(void)state;
	struct arena *arena = arena_new((size_t)64 * 1024 * 1024);
	assert_non_null(arena);
	uint8_t *blocks[40];
	size_t lens[40];

	for (size_t i = 0; i < 40; i++) {
		lens[i] = i % 5 == 0 ? 3000000 : i * 100;
		blocks[i] = arena_alloc(arena, lens[i]);
		assert_non_null(blocks[i]);
		memset(blocks[i], (int)i + 1, lens[i]);
	}
	for (size_t i = 0; i < 40; i++)
		for (size_t k = 0; k < lens[i]; k += 97)
			assert_int_equal(blocks[i][k], i + 1);
	arena_free(arena);
}

static void the_arena_keeps_its_ceiling(void **state)
{
	(void)state;
	struct arena *arena = arena_new(1000);
	assert_non_null(arena);

	assert_null(arena_alloc(arena, 1001));
	assert_non_null(arena_alloc(arena, 992));
	assert_null(arena_alloc(arena, 16));
	assert_non_null(arena_alloc(arena, 8)); /* a refusal is not sticky */
	assert_true(arena_used(arena) <= 1000);
	assert_true(view_is_null(arena_copy(arena, VIEW_LITERAL("abc"))));
	assert_null(arena_text(arena, VIEW_LITERAL("abc")));
	assert_null(arena_printf(arena, "%s", "abc"));
	arena_reset(arena);
	assert_non_null(arena_alloc(arena, 1000));
	arena_free(arena);
	arena_free(NULL);
}

static void the_ceiling_counts_over_all_chunks(void **state)
{
	(void)state;
	size_t ceiling = (size_t)10 * 1024 * 1024;
	struct arena *arena = arena_new(ceiling);
	assert_non_null(arena);
	size_t got = 0;

	while (arena_alloc(arena, 1000) != NULL)
		got += 1000;
	assert_true(got <= ceiling);
	assert_true(got > ceiling - ceiling / 50); /* the alignment takes a little */
	arena_free(arena);
}

static void sizes_that_overflow(void **state)
{
	(void)state;
	struct arena *arena = arena_new(SIZE_MAX);
	assert_non_null(arena);

	assert_null(arena_array(arena, SIZE_MAX / 8 + 1, 16));
	assert_null(arena_array(arena, SIZE_MAX, SIZE_MAX));
	assert_null(arena_alloc(arena, SIZE_MAX));
	assert_null(arena_alloc(arena, SIZE_MAX - 16));
	assert_non_null(arena_array(arena, 0, 16));
	assert_non_null(arena_array(arena, 10, 16));
	assert_true(view_is_null(arena_copy(arena, (struct view){ (const uint8_t *)"x", SIZE_MAX })));
	arena_free(arena);
}

static void copies_are_texts(void **state)
{
	(void)state;
	struct arena *arena = arena_new(100000);
	assert_non_null(arena);
	struct view copy = arena_copy(arena, VIEW_LITERAL("session"));

	assert_true(view_equal_text(copy, "session"));
	assert_int_equal(copy.data[7], 0);
	struct view empty = arena_copy(arena, VIEW_NULL);
	assert_false(view_is_null(empty));
	assert_int_equal(empty.len, 0);
	assert_string_equal(arena_text(arena, VIEW_LITERAL("text")), "text");
	assert_string_equal(arena_printf(arena, "%s-%d", "a", 5), "a-5");
	arena_free(arena);
}

static void a_reset_wipes(void **state)
{
	(void)state;
#if !defined(__SANITIZE_ADDRESS__) && !defined(__clang__)
	/* The first chunk is kept, so what was in it can be looked at (AddressSanitizer forbids that). */
	struct arena *arena = arena_new(100000);
	assert_non_null(arena);
	char *text = arena_printf(arena, "%s", "secret words");
	arena_reset(arena);
	assert_true(all_zero((const uint8_t *)text, 12));
	arena_free(arena);
#endif
	uint8_t bytes[4] = { 1, 2, 3, 4 };
	memory_wipe(bytes, sizeof(bytes));
	assert_true(all_zero(bytes, sizeof(bytes)));
	memory_wipe(NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_buffer_grows),
		cmocka_unit_test(the_ceiling_is_exact),
		cmocka_unit_test(a_formatted_text_may_end_at_the_ceiling),
		cmocka_unit_test(failure_is_sticky_until_reset),
		cmocka_unit_test(lengths_that_overflow_do_not_fit),
		cmocka_unit_test(a_reset_wipes_what_was_reserved_too),
		cmocka_unit_test(an_arena_hands_out_zeroed_aligned_memory),
		cmocka_unit_test(large_and_small_ones_mixed),
		cmocka_unit_test(the_arena_keeps_its_ceiling),
		cmocka_unit_test(the_ceiling_counts_over_all_chunks),
		cmocka_unit_test(sizes_that_overflow),
		cmocka_unit_test(copies_are_texts),
		cmocka_unit_test(a_reset_wipes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
