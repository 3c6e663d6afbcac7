#include "store/store_row.h"

#include "core/clock.h"
#include "core/records.h"
#include "store/store_param.h"

#include <string.h>

#define ARRAY_HEADER      12 /* dimensions, flags, element type */
#define ARRAY_DIMENSION   8  /* length, lower bound */
#define ARRAY_ELEMENT_MIN 4  /* its length */
#define NULL_LENGTH       UINT32_MAX

struct row row_at(const PGresult *result, int row, struct arena *arena)
{
	return (struct row){ .result = result, .row = row, .arena = arena, .bad_column = -1 };
}

enum fate row_end(const struct row *row, struct error *error)
{
	if (row->bad_column >= 0) {
		const char *name = PQfname(row->result, row->bad_column);
		return error_set(error, FATE_FATAL, ERR_USAGE,
		                 "PostgreSQL, reading a row: column %s is not what this program expects (were the "
		                 "tables changed by something else than `fermata migrate`?)",
		                 name != NULL ? name : "?");
	}
	if (row->no_memory)
		return error_set(error, FATE_REJECT, ERR_MEMORY,
		                 "PostgreSQL, reading a row: more than the memory set aside for it");
	if (row->column != PQnfields(row->result))
		return error_set(error, FATE_FATAL, ERR_BUG, "PostgreSQL, reading a row: %d columns of %d were read",
		                 row->column, PQnfields(row->result));
	return FATE_OK;
}

static void bad(struct row *row, int column)
{
	if (row->bad_column < 0)
		row->bad_column = column;
}

bool row_is_null(const struct row *row)
{
	return row->column >= PQnfields(row->result) || PQgetisnull(row->result, row->row, row->column) != 0;
}

void row_skip(struct row *row)
{
	row->column++;
}

/* The bytes of the next column, borrowed from the result. type 0: any. Null, and what is bad, is a null view. */
static struct view next(struct row *row, unsigned type)
{
	int column = row->column++;

	if (column >= PQnfields(row->result) || PQfformat(row->result, column) != 1 ||
	    (type != 0 && PQftype(row->result, column) != type)) {
		bad(row, column);
		return VIEW_NULL;
	}
	if (PQgetisnull(row->result, row->row, column))
		return VIEW_NULL;
	return (struct view){ (const uint8_t *)PQgetvalue(row->result, row->row, column),
		                  (size_t)PQgetlength(row->result, row->row, column) };
}

static uint64_t get_be(const uint8_t *from, size_t len)
{
	uint64_t value = 0;

	for (size_t i = 0; i < len; i++)
		value = value << 8 | from[i];
	return value;
}

static uint64_t number(struct row *row, unsigned type, size_t len)
{
	struct view bytes = next(row, type);

	if (view_is_null(bytes))
		return 0;
	if (bytes.len != len) {
		bad(row, row->column - 1);
		return 0;
	}
	return get_be(bytes.data, len);
}

bool row_bool(struct row *row)
{
	return number(row, PG_BOOL, 1) != 0;
}

int16_t row_int2(struct row *row)
{
	return (int16_t)number(row, PG_INT2, 2);
}

int32_t row_int4(struct row *row)
{
	return (int32_t)number(row, PG_INT4, 4);
}

int64_t row_int8(struct row *row)
{
	return (int64_t)number(row, PG_INT8, 8);
}

int64_t row_time(struct row *row)
{
	if (row_is_null(row)) {
		next(row, PG_INT8);
		return TIME_NONE;
	}
	return row_int8(row);
}

static struct view keep(struct row *row, struct view bytes)
{
	if (view_is_null(bytes))
		return VIEW_NULL;
	struct view copy = arena_copy(row->arena, bytes);
	if (view_is_null(copy))
		row->no_memory = true;
	return copy;
}

struct view row_text(struct row *row)
{
	return keep(row, next(row, PG_TEXT));
}

struct view row_bytes(struct row *row)
{
	return keep(row, next(row, PG_BYTEA));
}

struct view row_text_or_empty(struct row *row)
{
	struct view text = row_text(row);

	return view_is_null(text) ? VIEW_LITERAL("") : text;
}

struct uuid row_uuid(struct row *row)
{
	struct view bytes = next(row, PG_UUID);
	struct uuid uuid = { { 0 } };

	if (bytes.len == sizeof(uuid.bytes))
		memcpy(uuid.bytes, bytes.data, sizeof(uuid.bytes));
	else
		bad(row, row->column - 1);
	return uuid;
}

bool row_fixed(struct row *row, uint8_t *ret_bytes, size_t len)
{
	struct view bytes = next(row, PG_BYTEA);

	if (bytes.data == NULL || bytes.len != len) {
		memset(ret_bytes, 0, len);
		return false;
	}
	memcpy(ret_bytes, bytes.data, len);
	return true;
}

int row_enum(struct row *row, const char *(*name_of)(int), int count)
{
	/* The type's identifier is given by the database when the type is made: it is not known here. */
	struct view name = next(row, 0);

	if (view_is_null(name))
		return -1;
	int value = records_enum_find(name_of, count, name);
	if (value < 0)
		bad(row, row->column - 1);
	return value;
}

/* ---- arrays ---- */

/* Walks the elements of an array of one dimension. */
struct walk {
	struct view left; /* what was not read yet */
	size_t count;
};

static bool walk_begin(struct walk *walk, struct view array, enum pg_type element)
{
	*walk = (struct walk){ { NULL, 0 }, 0 };
	if (array.len < ARRAY_HEADER || get_be(array.data + 8, 4) != (uint64_t)element)
		return false;
	uint64_t dimensions = get_be(array.data, 4);
	if (dimensions == 0)
		return array.len == ARRAY_HEADER;
	if (dimensions != 1 || array.len < ARRAY_HEADER + ARRAY_DIMENSION)
		return false;
	walk->count = (size_t)get_be(array.data + ARRAY_HEADER, 4);
	walk->left.data = array.data + ARRAY_HEADER + ARRAY_DIMENSION;
	walk->left.len = array.len - ARRAY_HEADER - ARRAY_DIMENSION;
	return walk->count <= walk->left.len / ARRAY_ELEMENT_MIN;
}

static bool walk_next(struct walk *walk, struct view *ret_element)
{
	if (walk->left.len < ARRAY_ELEMENT_MIN)
		return false;
	uint64_t len = get_be(walk->left.data, 4);
	walk->left.data += ARRAY_ELEMENT_MIN;
	walk->left.len -= ARRAY_ELEMENT_MIN;
	*ret_element = VIEW_NULL;
	if (len == NULL_LENGTH)
		return true;
	if (len > walk->left.len)
		return false;
	*ret_element = (struct view){ walk->left.data, (size_t)len };
	walk->left.data += len;
	walk->left.len -= (size_t)len;
	return true;
}

/* Begins an array; false when there are no elements to be read. */
static bool elements(struct row *row, unsigned type, enum pg_type element, struct walk *ret_walk)
{
	struct view array = next(row, type);

	if (view_is_null(array))
		return false;
	if (!walk_begin(ret_walk, array, element)) {
		bad(row, row->column - 1);
		return false;
	}
	return ret_walk->count > 0;
}

void row_texts(struct row *row, struct view **ret_texts, size_t *ret_len)
{
	struct walk walk;
	struct view element;

	*ret_texts = NULL;
	*ret_len = 0;
	if (!elements(row, PG_TEXT_ARRAY, PG_TEXT, &walk))
		return;
	struct view *texts = arena_array(row->arena, walk.count, sizeof(*texts));
	if (texts == NULL) {
		row->no_memory = true;
		return;
	}
	for (size_t i = 0; i < walk.count; i++) {
		if (!walk_next(&walk, &element)) {
			bad(row, row->column - 1);
			return;
		}
		texts[i] = keep(row, view_is_null(element) ? VIEW_LITERAL("") : element);
	}
	*ret_texts = texts;
	*ret_len = walk.count;
}

void row_uuids(struct row *row, struct uuid **ret_uuids, size_t *ret_len)
{
	struct walk walk;
	struct view element;

	*ret_uuids = NULL;
	*ret_len = 0;
	if (!elements(row, PG_UUID_ARRAY, PG_UUID, &walk))
		return;
	struct uuid *uuids = arena_array(row->arena, walk.count, sizeof(*uuids));
	if (uuids == NULL) {
		row->no_memory = true;
		return;
	}
	for (size_t i = 0; i < walk.count; i++) {
		if (!walk_next(&walk, &element) || element.len != sizeof(uuids[i].bytes)) {
			bad(row, row->column - 1);
			return;
		}
		memcpy(uuids[i].bytes, element.data, element.len);
	}
	*ret_uuids = uuids;
	*ret_len = walk.count;
}

enum fate row_ordinal(struct row *row, size_t len, size_t *ret_at, struct error *error)
{
	int64_t n = row_int8(row);

	*ret_at = (size_t)(n - 1);
	if (n >= 1 && (uint64_t)n <= len)
		return FATE_OK;
	return error_set(error, FATE_FATAL, ERR_BUG,
	                 "PostgreSQL, reading a row: its ordinal is none that was asked for");
}

enum fate row_number(void *context, const PGresult *rows, struct error *error)
{
	int64_t *number = context;
	struct row row = row_at(rows, 0, NULL);

	*number = row_time(&row);
	return row_end(&row, error);
}
