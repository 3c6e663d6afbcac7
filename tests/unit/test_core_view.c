// links: core
// Views: null is not empty, the order, and what is UTF-8.
#include "core/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void null_is_not_empty(void **state)
{
	(void)state;
	struct view empty = view_of("");

	assert_true(view_is_null(view_of(NULL)));
	assert_false(view_is_null(empty));
	assert_false(view_equal(VIEW_NULL, empty));
	assert_false(view_equal(empty, VIEW_NULL));
	assert_true(view_equal(VIEW_NULL, VIEW_NULL));
	assert_true(view_equal(empty, VIEW_LITERAL("")));
	assert_true(view_equal_text(VIEW_NULL, NULL));
	assert_false(view_equal_text(VIEW_NULL, ""));
}

static void equality_and_order(void **state)
{
	(void)state;
	static const char *const ordered[] = { NULL, "", "a", "aa", "ab", "b", "\xFF" };
	size_t count = sizeof(ordered) / sizeof(ordered[0]);

	for (size_t i = 0; i < count; i++) {
		for (size_t j = 0; j < count; j++) {
			int order = view_compare(view_of(ordered[i]), view_of(ordered[j]));
			assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
			assert_int_equal(view_equal(view_of(ordered[i]), view_of(ordered[j])), i == j);
		}
	}
	assert_true(view_equal_text(VIEW_LITERAL("tool"), "tool"));
	assert_false(view_equal_text(VIEW_LITERAL("tool"), "tools"));
}

static void a_nul_is_found(void **state)
{
	(void)state;
	assert_true(view_has_nul(VIEW_LITERAL("a\0b")));
	assert_true(view_has_nul(VIEW_LITERAL("\0")));
	assert_false(view_has_nul(VIEW_LITERAL("ab")));
	assert_false(view_has_nul(VIEW_LITERAL("")));
	assert_false(view_has_nul(VIEW_NULL));
}

#define BYTES(s)                                                                                             \
	{                                                                                                        \
		s, sizeof(s) - 1                                                                                     \
	}

struct bytes {
	const char *data;
	size_t len;
};

static const struct bytes good[] = {
	BYTES(""),
	BYTES("a"),
	BYTES("\0"),
	BYTES("\x7F"),
	BYTES("\xC2\x80"),         /* U+0080, the first of two bytes */
	BYTES("\xDF\xBF"),         /* U+07FF */
	BYTES("\xE0\xA0\x80"),     /* U+0800 */
	BYTES("\xED\x9F\xBF"),     /* U+D7FF, the last before the surrogates */
	BYTES("\xEE\x80\x80"),     /* U+E000, the first after them */
	BYTES("\xEF\xBF\xBD"),     /* U+FFFD */
	BYTES("\xEF\xBF\xBF"),     /* U+FFFF: a noncharacter is well-formed */
	BYTES("\xF0\x90\x80\x80"), /* U+10000 */
	BYTES("\xF1\x80\x80\x80"),
	BYTES("\xF4\x8F\xBF\xBF"), /* U+10FFFF */
	BYTES("\xEF\xBB\xBF"),     /* a byte order mark */
	BYTES("abcdefgh\xC3\xA9ijklmnopq"),
	BYTES("abcdefg\xF0\x9F\x8E\xB5hijklmno"),
};

static const struct bytes bad[] = {
	BYTES("\x80"), /* a continuation alone */
	BYTES("\xBF"),
	BYTES("\xC0\x80"), /* overlong NUL, as Java's modified UTF-8 writes it */
	BYTES("\xC1\xBF"), /* overlong */
	BYTES("\xE0\x80\x80"),
	BYTES("\xE0\x9F\xBF"), /* overlong */
	BYTES("\xF0\x80\x80\x80"),
	BYTES("\xF0\x8F\xBF\xBF"),         /* overlong */
	BYTES("\xED\xA0\x80"),             /* U+D800 */
	BYTES("\xED\xBF\xBF"),             /* U+DFFF */
	BYTES("\xED\xA0\xBD\xED\xB2\xA9"), /* a pair of surrogates, as CESU-8 writes it */
	BYTES("\xF4\x90\x80\x80"),         /* U+110000 */
	BYTES("\xF5\x80\x80\x80"),
	BYTES("\xF8\x88\x80\x80\x80"), /* five bytes */
	BYTES("\xFE"),
	BYTES("\xFF"),
	BYTES("\xC2"), /* cut short, each length at each place */
	BYTES("\xE0\xA0"),
	BYTES("\xE1"),
	BYTES("\xF0\x90\x80"),
	BYTES("\xF0\x90"),
	BYTES("\xF0"),
	BYTES("\xC2\x41"), /* something else where a continuation belongs */
	BYTES("\xE1\x80\x41"),
	BYTES("\xF1\x80\x80\x41"),
	BYTES("\xE1\x41\x80"),
	BYTES("abcdefgh\xFFijklmnop"),
	BYTES("abcdefghijklmno\xC3"),
};

/* At every offset within a word, in memory of just that size, so that a read beyond it is seen. */
static bool utf8_at_offset(const struct bytes *bytes, size_t offset)
{
	uint8_t *data = malloc(offset + bytes->len + 1);

	assert_non_null(data);
	memset(data, 'x', offset);
	memcpy(data + offset, bytes->data, bytes->len);
	uint8_t *exact = realloc(data, offset + bytes->len > 0 ? offset + bytes->len : 1);
	bool answer = view_is_utf8((struct view){ exact, offset + bytes->len });
	free(exact);
	return answer;
}

static void utf8_edges(void **state)
{
	(void)state;
	assert_true(view_is_utf8(VIEW_NULL));
	for (size_t offset = 0; offset < 17; offset++) {
		for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
			assert_true(utf8_at_offset(&good[i], offset));
		for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
			assert_false(utf8_at_offset(&bad[i], offset));
	}
}

static size_t encode(uint32_t point, uint8_t out[4])
{
	if (point < 0x80)
		return out[0] = (uint8_t)point, 1;
	if (point < 0x800) {
		out[0] = (uint8_t)(0xC0 | point >> 6);
		out[1] = (uint8_t)(0x80 | (point & 0x3F));
		return 2;
	}
	if (point < 0x10000) {
		out[0] = (uint8_t)(0xE0 | point >> 12);
		out[1] = (uint8_t)(0x80 | (point >> 6 & 0x3F));
		out[2] = (uint8_t)(0x80 | (point & 0x3F));
		return 3;
	}
	out[0] = (uint8_t)(0xF0 | point >> 18);
	out[1] = (uint8_t)(0x80 | (point >> 12 & 0x3F));
	out[2] = (uint8_t)(0x80 | (point >> 6 & 0x3F));
	out[3] = (uint8_t)(0x80 | (point & 0x3F));
	return 4;
}

static void every_code_point(void **state)
{
	(void)state;
	for (uint32_t point = 0; point < 0x120000; point++) {
		uint8_t bytes[4];
		size_t len = encode(point, bytes);
		bool legal = point < 0x110000 && (point < 0xD800 || point > 0xDFFF);
		size_t step = view_utf8_step((struct view){ bytes, len });
		if (step != (legal ? len : 0))
			fail_msg("U+%04X", point);
	}
	assert_int_equal(view_utf8_step(VIEW_NULL), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(null_is_not_empty), cmocka_unit_test(equality_and_order),
		cmocka_unit_test(a_nul_is_found),    cmocka_unit_test(utf8_edges),
		cmocka_unit_test(every_code_point),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
