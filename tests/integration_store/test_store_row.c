/* Rows as a hostile or foreign database might give them. Needs no server: libpq makes results by itself. */
#include "tests/integration_store/store_support.h"

#include "store/store_param.h"
#include "store/store_record.h"

#include <string.h>

static struct arena *arena;

static int setup(void **state)
{
	(void)state;
	arena = arena_new(1 << 20);
	return arena != NULL ? 0 : -1;
}

static int teardown(void **state)
{
	(void)state;
	arena_free(arena);
	return 0;
}

/* A result of one row and one column. bytes NULL: null. */
static PGresult *result_of(unsigned type, int format, const void *bytes, int len)
{
	PGresult *result = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
	char name[] = "column";
	PGresAttDesc column = { .name = name, .format = format, .typid = type };
	char value[256];

	assert_true(len <= (int)sizeof(value));
	if (bytes != NULL)
		memcpy(value, bytes, (size_t)len);
	assert_int_equal(PQsetResultAttrs(result, 1, &column), 1);
	assert_int_equal(PQsetvalue(result, 0, 0, bytes != NULL ? value : NULL, bytes != NULL ? len : -1), 1);
	return result;
}

typedef void reader(struct row *row);

static void read_bool(struct row *row)
{
	row_bool(row);
}

static void read_int8(struct row *row)
{
	row_int8(row);
}

static void read_time(struct row *row)
{
	row_time(row);
}

static void read_text(struct row *row)
{
	row_text(row);
}

static void read_uuid(struct row *row)
{
	row_uuid(row);
}

static void read_texts(struct row *row)
{
	struct view *texts;
	size_t len;

	row_texts(row, &texts, &len);
}

static void read_uuids(struct row *row)
{
	struct uuid *uuids;
	size_t len;

	row_uuids(row, &uuids, &len);
}

static const char *state_at(int i)
{
	return gate_state_name((enum gate_state)i);
}

static void read_state(struct row *row)
{
	row_enum(row, state_at, GATE_STATE_COUNT);
}

static enum fate fate_of(reader *read, unsigned type, int format, const void *bytes, int len)
{
	PGresult *result = result_of(type, format, bytes, len);
	struct row row = row_at(result, 0, arena);
	struct error error;

	read(&row);
	enum fate fate = row_end(&row, &error);
	PQclear(result);
	return fate;
}

static void types_and_lengths_are_looked_at(void **state)
{
	(void)state;
	assert_int_equal(fate_of(read_bool, PG_BOOL, 1, "\1", 1), FATE_OK);
	assert_int_equal(fate_of(read_bool, PG_BOOL, 1, NULL, 0), FATE_OK);
	assert_int_equal(fate_of(read_bool, PG_BOOL, 1, "\1\1", 2), FATE_FATAL);
	assert_int_equal(fate_of(read_bool, PG_INT4, 1, "\1", 1), FATE_FATAL);
	assert_int_equal(fate_of(read_int8, PG_INT8, 1, "12345678", 8), FATE_OK);
	assert_int_equal(fate_of(read_int8, PG_INT8, 1, "1234567", 7), FATE_FATAL);
	assert_int_equal(fate_of(read_int8, PG_INT8, 0, "12345678", 8), FATE_FATAL); /* text format */
	assert_int_equal(fate_of(read_time, PG_INT8, 1, NULL, 0), FATE_OK);
	assert_int_equal(fate_of(read_time, PG_TEXT, 1, NULL, 0), FATE_FATAL);
	assert_int_equal(fate_of(read_text, PG_TEXT, 1, "", 0), FATE_OK);
	assert_int_equal(fate_of(read_text, PG_BYTEA, 1, "", 0), FATE_FATAL);
	assert_int_equal(fate_of(read_uuid, PG_UUID, 1, "0123456789abcdef", 16), FATE_OK);
	assert_int_equal(fate_of(read_uuid, PG_UUID, 1, "0123456789abcde", 15), FATE_FATAL);
	assert_int_equal(fate_of(read_uuid, PG_UUID, 1, NULL, 0), FATE_FATAL);
	assert_int_equal(fate_of(read_state, 99999, 1, "PENDING", 7), FATE_OK);
	assert_int_equal(fate_of(read_state, 99999, 1, NULL, 0), FATE_OK);
	assert_int_equal(fate_of(read_state, 99999, 1, "PENDIN", 6), FATE_FATAL);
	assert_int_equal(fate_of(read_state, 99999, 1, "", 0), FATE_FATAL);
}

static void columns_are_counted(void **state)
{
	(void)state;
	PGresult *result = result_of(PG_INT4, 1, "1234", 4);
	struct row row = row_at(result, 0, arena);
	struct error error;

	assert_int_equal(row_end(&row, &error), FATE_FATAL); /* none was read */
	row_skip(&row);
	assert_int_equal(row_end(&row, &error), FATE_OK);
	assert_true(row_is_null(&row));
	row_int4(&row); /* one more than there are */
	assert_int_equal(row_end(&row, &error), FATE_FATAL);
	PQclear(result);
}

/* {'ab', NULL, ''} */
static const uint8_t good_texts[] = { 0, 0, 0, 1, 0, 0, 0, 1,   0,   0,   0,   25,  0,   0, 0, 3, 0,
	                                  0, 0, 1, 0, 0, 0, 2, 'a', 'b', 255, 255, 255, 255, 0, 0, 0, 0 };

static void arrays_are_walked_with_care(void **state)
{
	(void)state;
	PGresult *result = result_of(PG_TEXT_ARRAY, 1, good_texts, sizeof(good_texts));
	struct row row = row_at(result, 0, arena);
	struct view *texts;
	struct error error;
	size_t len;

	row_texts(&row, &texts, &len);
	assert_int_equal(row_end(&row, &error), FATE_OK);
	assert_int_equal(len, 3);
	assert_true(view_equal_text(texts[0], "ab"));
	assert_true(view_equal_text(texts[1], ""));
	assert_true(view_equal_text(texts[2], ""));
	PQclear(result);
	for (int cut = 0; cut < (int)sizeof(good_texts); cut++)
		assert_int_equal(fate_of(read_texts, PG_TEXT_ARRAY, 1, good_texts, cut), FATE_FATAL);
	assert_int_equal(fate_of(read_uuids, PG_UUID_ARRAY, 1, good_texts, sizeof(good_texts)), FATE_FATAL);
}

/* Every byte of an array changed to what hurts most: it is read or refused, and nothing is read beyond it. */
static void arrays_with_any_byte_changed_do_no_harm(void **state)
{
	(void)state;
	static const uint8_t values[] = { 0, 1, 2, 0x7F, 0x80, 0xFF };
	uint8_t bytes[sizeof(good_texts)];

	for (size_t at = 0; at < sizeof(bytes); at++) {
		for (size_t i = 0; i < sizeof(values); i++) {
			memcpy(bytes, good_texts, sizeof(bytes));
			bytes[at] = values[i];
			enum fate fate = fate_of(read_texts, PG_TEXT_ARRAY, 1, bytes, sizeof(bytes));
			assert_true(fate == FATE_OK || fate == FATE_FATAL);
		}
	}
}

static void bytes_of_another_length_read_as_zeros(void **state)
{
	(void)state;
	uint8_t out[4];
	PGresult *result = result_of(PG_BYTEA, 1, "abcd", 4);
	struct row row = row_at(result, 0, arena);

	assert_true(row_fixed(&row, out, 4));
	assert_memory_equal(out, "abcd", 4);
	row = row_at(result, 0, arena);
	assert_false(row_fixed(&row, out, 3));
	assert_memory_equal(out, "\0\0\0d", 4);
	PQclear(result);
}

static void an_arena_that_is_too_small_is_no_crash(void **state)
{
	(void)state;
	struct arena *tiny = arena_new(8);
	PGresult *result = result_of(PG_TEXT, 1, "a text that is longer than that", 31);
	struct row row = row_at(result, 0, tiny);
	struct checkpoint_list list = { .arena = tiny };
	struct error error = { 0 };

	assert_true(view_is_null(row_text(&row)));
	assert_int_equal(row_end(&row, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_MEMORY);
	assert_int_equal(checkpoint_list_rows(&list, result, &error), FATE_REJECT);
	assert_int_equal(error.code, ERR_MEMORY);
	PQclear(result);
	arena_free(tiny);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(types_and_lengths_are_looked_at, setup, teardown),
		cmocka_unit_test_setup_teardown(columns_are_counted, setup, teardown),
		cmocka_unit_test_setup_teardown(arrays_are_walked_with_care, setup, teardown),
		cmocka_unit_test_setup_teardown(arrays_with_any_byte_changed_do_no_harm, setup, teardown),
		cmocka_unit_test_setup_teardown(bytes_of_another_length_read_as_zeros, setup, teardown),
		cmocka_unit_test_setup_teardown(an_arena_that_is_too_small_is_no_crash, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
