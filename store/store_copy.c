#include "store/store_copy.h"

#include <assert.h>
#include <string.h>

/* So many bytes are put together before they are given to libpq, which copies them. */
#define CHUNK_MAX ((size_t)64 * 1024)

/* The largest row: a sealed state (PostgreSQL takes no larger value than 1 GiB) and what stands in clear. */
#define ROW_MAX ((size_t)1 << 30)

static const char header[] = "PGCOPY\n\377\r\n\0\0\0\0\0\0\0\0";
#define UNIQUE_VIOLATION "23505"

static const char trailer[] = "\377\377";

#define HEADER_LEN  sizeof(header) /* its end is the NUL */
#define TRAILER_LEN 2

static void append_be(struct buffer *buffer, uint32_t value, size_t len)
{
	uint8_t bytes[4];

	for (size_t i = 0; i < len; i++)
		bytes[i] = (uint8_t)(value >> (8 * (len - 1 - i)));
	buffer_append(buffer, bytes, len);
}

static void append_row(struct buffer *buffer, const struct params *params)
{
	append_be(buffer, (uint32_t)params->len, 2);
	for (size_t i = 0; i < params->len; i++) {
		bool null = params->values[i] == NULL;
		append_be(buffer, null ? UINT32_MAX : (uint32_t)params->lengths[i], 4);
		if (!null)
			buffer_append(buffer, params->values[i], (size_t)params->lengths[i]);
	}
}

/* All rows, a chunk at a time. */
static enum fate put_rows(struct store *store, const struct copy *copy, struct buffer *buffer,
                          struct error *error)
{
	struct pipeline *pipeline = store_pipeline(store);

	buffer_append(buffer, header, HEADER_LEN);
	for (size_t i = 0; i < copy->rows; i++) {
		struct params *params = store_params(store);
		copy->put(params, copy->context, i);
		params_seal(params);
		enum fate fate = pipeline_params_good(params, copy->statement, error);
		if (fate != FATE_OK)
			return fate;
		append_row(buffer, params);
		if (buffer->len < CHUNK_MAX)
			continue;
		fate = pipeline_copy_put(pipeline, copy->statement, buffer, error);
		if (fate != FATE_OK)
			return fate;
	}
	buffer_append(buffer, trailer, TRAILER_LEN);
	return pipeline_copy_put(pipeline, copy->statement, buffer, error);
}

/* The transaction has failed. A row that is there already is no fault of the rows: another worker was first. */
static enum fate failed(struct store *store, enum fate fate, struct error *error)
{
	if (fate == FATE_RETRY)
		store_drop(store);
	if (fate == FATE_REJECT && strcmp(error->native, UNIQUE_VIOLATION) == 0) {
		error->code = ERR_STALE;
		fate = error->fate = FATE_RETRY;
	}
	return fate;
}

enum fate store_copy(struct store *store, const struct copy *copy, struct error *error)
{
	struct pipeline *pipeline = store_pipeline(store);
	struct buffer buffer;
	int64_t rows = 0;

	enum fate fate = pipeline_copy_begin(pipeline, copy->statement, error);
	if (fate != FATE_OK)
		return failed(store, fate, error);
	buffer_init(&buffer, ROW_MAX + CHUNK_MAX);
	fate = put_rows(store, copy, &buffer, error);
	buffer_done(&buffer);
	if (fate == FATE_OK)
		fate = pipeline_copy_end(pipeline, copy->statement, &rows, error);
	else if (fate == FATE_REJECT)
		pipeline_copy_give_up(pipeline);
	if (fate == FATE_OK && rows != (int64_t)copy->rows)
		return error_set(error, FATE_FATAL, ERR_USAGE,
		                 "PostgreSQL, %s: %lld rows of %zu were taken: is there a trigger on the table?",
		                 copy->statement->name, (long long)rows, copy->rows);
	return failed(store, fate, error);
}
