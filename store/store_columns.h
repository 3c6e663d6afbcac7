/*
 * store_columns.h - many rows as the parameters of one statement: each column of a table of columns becomes an
 * array, which the statement takes apart with unnest.
 */
#ifndef FERMATA_STORE_STORE_COLUMNS_H
#define FERMATA_STORE_STORE_COLUMNS_H

#include "store/store_param.h"

/* Adds one element to the array that is being put together, out of a field of a row. */
typedef void put_item(struct params *params, const void *field);

struct column {
	enum pg_type type; /* of an element */
	put_item *put;
	size_t offset; /* of the field in the row's struct; 0 when put wants the row itself */
};

#define COLUMNS_LEN(columns) (sizeof(columns) / sizeof((columns)[0]))

/* One array for each column, in the order of the rows. */
void params_columns(struct params *params, const struct column *columns, size_t columns_len,
                    const void *const *rows, size_t rows_len);

/* Fields of the usual types. */
void column_put_uuid(struct params *params, const void *field);   /* struct uuid */
void column_put_view(struct params *params, const void *field);   /* struct view, a text */
void column_put_name(struct params *params, const void *field);   /* const char * */
void column_put_bool(struct params *params, const void *field);   /* bool */
void column_put_int4(struct params *params, const void *field);   /* int32_t */
void column_put_int8(struct params *params, const void *field);   /* int64_t */
void column_put_time(struct params *params, const void *field);   /* int64_t, TIME_NONE is null */
void column_put_digest(struct params *params, const void *field); /* 32 bytes */

#endif
