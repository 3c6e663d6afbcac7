#include "store/store_columns.h"

#include "core/records.h"

void params_columns(struct params *params, const struct column *columns, size_t columns_len,
                    const void *const *rows, size_t rows_len)
{
	for (size_t i = 0; i < columns_len; i++) {
		param_array(params, columns[i].type, rows_len);
		for (size_t j = 0; j < rows_len; j++)
			columns[i].put(params, (const uint8_t *)rows[j] + columns[i].offset);
	}
}

void column_put_uuid(struct params *params, const void *field)
{
	item_uuid(params, field);
}

void column_put_view(struct params *params, const void *field)
{
	item_text(params, *(const struct view *)field);
}

void column_put_name(struct params *params, const void *field)
{
	item_name(params, *(const char *const *)field);
}

void column_put_bool(struct params *params, const void *field)
{
	item_bool(params, *(const bool *)field);
}

void column_put_int4(struct params *params, const void *field)
{
	item_int4(params, *(const int32_t *)field);
}

void column_put_int8(struct params *params, const void *field)
{
	item_int8(params, *(const int64_t *)field);
}

void column_put_time(struct params *params, const void *field)
{
	item_time(params, *(const int64_t *)field);
}

void column_put_digest(struct params *params, const void *field)
{
	item_bytes(params, (struct view){ field, DIGEST_LEN });
}
