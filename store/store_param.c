#include "store/store_param.h"

#include "core/clock.h"

#include <assert.h>
#include <limits.h>
#include <string.h>

#define US_PER_DAY     INT64_C(86400000000)
#define DAYS_TO_2000   10957   /* from 1970-01-01 to PostgreSQL's 2000-01-01 */
#define DAY_LAST       2932896 /* 9999-12-31, from 1970-01-01 */
#define ARRAY_FLAGS_AT 4       /* offset of the flags in the header of an array */
#define ARRAY_HAS_NULL 1

static void put_be(uint8_t *to, uint64_t value, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = (uint8_t)(value >> (8 * (len - 1 - i)));
}

void params_init(struct params *params)
{
	memset(params, 0, sizeof(*params));
	buffer_init(&params->arrays, PARAMS_ARRAYS_MAX);
}

void params_done(struct params *params)
{
	buffer_done(&params->arrays);
}

void params_reset(struct params *params)
{
	params->len = 0;
	params->array_left = 0;
	params->fault = PARAMS_GOOD;
	params->fault_at = 0;
	buffer_reset(&params->arrays);
}

static void fault(struct params *params, enum params_fault what)
{
	if (params->fault != PARAMS_GOOD)
		return;
	params->fault = what;
	params->fault_at = params->len;
}

/* ---- scalars ---- */

static size_t add(struct params *params, const void *value, size_t len)
{
	size_t at = params->len;

	assert(at < PARAMS_MAX && params->array_left == 0);
	params->len++;
	params->values[at] = value;
	params->lengths[at] = (int)len;
	params->formats[at] = 1;
	params->array_at[at] = SIZE_MAX;
	if (len > INT_MAX)
		fault(params, PARAMS_LARGE);
	return at;
}

static void add_number(struct params *params, uint64_t value, size_t len)
{
	size_t at = add(params, NULL, len);

	put_be(params->numbers[at], value, len);
	params->values[at] = (const char *)params->numbers[at];
}

void param_null(struct params *params)
{
	add(params, NULL, 0);
}

void param_bool(struct params *params, bool value)
{
	add_number(params, value ? 1 : 0, 1);
}

void param_int2(struct params *params, int16_t value)
{
	add_number(params, (uint64_t)(int64_t)value, 2);
}

void param_int4(struct params *params, int32_t value)
{
	add_number(params, (uint64_t)(int64_t)value, 4);
}

void param_int8(struct params *params, int64_t value)
{
	add_number(params, (uint64_t)value, 8);
}

void param_time(struct params *params, int64_t time_us)
{
	if (time_us == TIME_NONE)
		param_null(params);
	else
		param_int8(params, time_us);
}

int32_t day_of(int64_t time_us)
{
	int64_t day = time_us < 0 ? 0 : time_us / US_PER_DAY;

	return (int32_t)((day < DAY_LAST ? day : DAY_LAST) - DAYS_TO_2000);
}

void param_day(struct params *params, int64_t time_us)
{
	param_int4(params, day_of(time_us));
}

void param_text(struct params *params, struct view text)
{
	add(params, text.data, text.len);
	if (view_has_nul(text))
		fault(params, PARAMS_NUL);
}

void param_name(struct params *params, const char *text)
{
	param_text(params, view_of(text));
}

void param_bytes(struct params *params, struct view bytes)
{
	add(params, bytes.data, bytes.len);
}

void param_uuid(struct params *params, const struct uuid *uuid)
{
	add(params, uuid->bytes, sizeof(uuid->bytes));
}

void param_uuids(struct params *params, const struct uuid *uuids, size_t len)
{
	param_array(params, PG_UUID, len);
	for (size_t i = 0; i < len; i++)
		item_uuid(params, &uuids[i]);
}

/* ---- arrays ---- */

static void array_append(struct params *params, const void *data, size_t len)
{
	buffer_append(&params->arrays, data, len);
	if (buffer_failed(&params->arrays))
		fault(params, params->arrays.starved ? PARAMS_MEMORY : PARAMS_LARGE);
}

static void array_number(struct params *params, uint64_t value, size_t len)
{
	uint8_t bytes[8];

	put_be(bytes, value, len);
	array_append(params, bytes, len);
}

void param_array(struct params *params, enum pg_type element, size_t count)
{
	size_t at = add(params, NULL, 0);

	if (count > INT_MAX)
		fault(params, PARAMS_LARGE);
	params->array_at[at] = params->arrays.len;
	params->array_left = count;
	array_number(params, count > 0 ? 1 : 0, 4); /* dimensions */
	array_number(params, 0, 4);                 /* flags */
	array_number(params, (uint64_t)element, 4);
	if (count > 0) {
		array_number(params, count, 4);
		array_number(params, 1, 4); /* lower bound */
	}
}

static void add_item(struct params *params, const void *data, size_t len)
{
	assert(params->array_left > 0);
	params->array_left--;
	if (len > INT_MAX) {
		fault(params, PARAMS_LARGE);
		return;
	}
	array_number(params, len, 4);
	array_append(params, data, len);
}

static void add_item_number(struct params *params, uint64_t value, size_t len)
{
	uint8_t bytes[8];

	put_be(bytes, value, len);
	add_item(params, bytes, len);
}

void item_null(struct params *params)
{
	assert(params->array_left > 0);
	params->array_left--;
	array_number(params, UINT32_MAX, 4);
	if (!buffer_failed(&params->arrays))
		put_be(params->arrays.data + params->array_at[params->len - 1] + ARRAY_FLAGS_AT, ARRAY_HAS_NULL, 4);
}

void item_bool(struct params *params, bool value)
{
	add_item_number(params, value ? 1 : 0, 1);
}

void item_int4(struct params *params, int32_t value)
{
	add_item_number(params, (uint64_t)(int64_t)value, 4);
}

void item_int8(struct params *params, int64_t value)
{
	add_item_number(params, (uint64_t)value, 8);
}

void item_time(struct params *params, int64_t time_us)
{
	if (time_us == TIME_NONE)
		item_null(params);
	else
		item_int8(params, time_us);
}

void item_text(struct params *params, struct view text)
{
	if (view_has_nul(text))
		fault(params, PARAMS_NUL);
	item_bytes(params, text);
}

void item_name(struct params *params, const char *text)
{
	item_text(params, view_of(text));
}

void item_bytes(struct params *params, struct view bytes)
{
	if (bytes.data == NULL)
		item_null(params);
	else
		add_item(params, bytes.data, bytes.len);
}

void item_uuid(struct params *params, const struct uuid *uuid)
{
	add_item(params, uuid->bytes, sizeof(uuid->bytes));
}

size_t params_seal(struct params *params)
{
	size_t total = 0;
	size_t end = params->arrays.len;

	assert(params->array_left == 0);
	for (size_t i = params->len; i-- > 0;) {
		if (params->array_at[i] != SIZE_MAX) {
			size_t len = end - params->array_at[i];
			if (len > INT_MAX)
				fault(params, PARAMS_LARGE);
			params->values[i] = (const char *)params->arrays.data + params->array_at[i];
			params->lengths[i] = (int)len;
			end = params->array_at[i];
		}
		total += params->lengths[i] > 0 ? (size_t)params->lengths[i] : 0;
	}
	return total;
}
