/*
 * store_param.h - the parameters of one statement, in PostgreSQL's binary formats.
 *
 * Added in the order of $1, $2, ... Scalars borrow what they are given (but for numbers, which are kept
 * here), arrays are put together in here. A fault is sticky: a text with U+0000, which PostgreSQL cannot
 * hold, or no memory. Whoever sends the statement asks params_fault. An enum is sent as its name: that is
 * its binary format; in an array it is text, and the statement casts.
 *
 * Source of the formats: the recv functions of PostgreSQL, src/backend/utils/adt (arrayfuncs.c array_recv:
 * dimensions, flags, element type, then length and lower bound of the dimension, then length and bytes of
 * each element, -1 for null; everything big-endian).
 */
#ifndef FERMATA_STORE_STORE_PARAM_H
#define FERMATA_STORE_STORE_PARAM_H

#include "core/uuid.h"

/* Object identifiers of built-in types (src/include/catalog/pg_type.dat): fixed for all time. */
enum pg_type {
	PG_BOOL = 16,
	PG_BYTEA = 17,
	PG_INT8 = 20,
	PG_INT2 = 21,
	PG_INT4 = 23,
	PG_TEXT = 25,
	PG_TEXT_ARRAY = 1009,
	PG_DATE = 1082,
	PG_UUID = 2950,
	PG_UUID_ARRAY = 2951,
};

#define PARAMS_MAX        64
#define PARAMS_ARRAYS_MAX ((size_t)256 * 1024 * 1024) /* bytes of all arrays of one statement */

enum params_fault { PARAMS_GOOD, PARAMS_NUL, PARAMS_LARGE, PARAMS_MEMORY };

struct params {
	size_t len;
	const char *values[PARAMS_MAX];
	int lengths[PARAMS_MAX];
	int formats[PARAMS_MAX]; /* all 1: binary */
	uint8_t numbers[PARAMS_MAX][8];
	size_t array_at[PARAMS_MAX]; /* where an array begins in `arrays`; else SIZE_MAX */
	size_t array_left;           /* elements that are still owed to the array at the end */
	struct buffer arrays;
	enum params_fault fault;
	size_t fault_at; /* the number of the first parameter at fault, from 1 */
};

void params_init(struct params *params);
void params_done(struct params *params);
/* Empties it for the next statement; keeps its memory. */
void params_reset(struct params *params);

void param_null(struct params *params);
void param_bool(struct params *params, bool value);
void param_int2(struct params *params, int16_t value);
void param_int4(struct params *params, int32_t value);
void param_int8(struct params *params, int64_t value);
/* TIME_NONE is null. */
void param_time(struct params *params, int64_t time_us);
/* The UTC day of a time, as PostgreSQL counts days; times outside of the years 1970 to 9999 count as the nearest day in it. */
int32_t day_of(int64_t time_us);
void param_day(struct params *params, int64_t time_us);
/* Borrow until the statement is sent; data == NULL is null. */
void param_text(struct params *params, struct view text);
void param_name(struct params *params, const char *text);
void param_bytes(struct params *params, struct view bytes);
void param_uuid(struct params *params, const struct uuid *uuid);
void param_uuids(struct params *params, const struct uuid *uuids, size_t len);

/* An array of exactly count elements of that type, which follow by item_...; they are copied. */
void param_array(struct params *params, enum pg_type element, size_t count);
void item_null(struct params *params);
void item_bool(struct params *params, bool value);
void item_int4(struct params *params, int32_t value);
void item_int8(struct params *params, int64_t value);
void item_time(struct params *params, int64_t time_us);
void item_text(struct params *params, struct view text);
void item_name(struct params *params, const char *text);
void item_bytes(struct params *params, struct view bytes);
void item_uuid(struct params *params, const struct uuid *uuid);

/* Points the values at the arrays; to be called once, when all are added, before values is used. Bytes in all. */
size_t params_seal(struct params *params);

#endif
