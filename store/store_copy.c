#include "store/store_copy.h"

#include <string.h>

/* So many bytes are put together before they are given to libpq, which copies them. */
#define CHUNK_MAX ((size_t)64 * 1024)

/* The largest row: a sealed state (PostgreSQL takes no larger value than 1 GiB) and what stands in clear. */
#define ROW_MAX ((size_t)1 << 30)

#define TEXT_MAX ((size_t)16 * 1024) /* all statements of one query together */

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

/* The one query: the server takes up the next COPY as soon as it has answered the one before. */
static enum fate begin(struct store *store, const struct copy *copies, size_t len, struct error *error)
{
	struct buffer text;

	buffer_init(&text, TEXT_MAX);
	for (size_t i = 0; i < len; i++) {
		const char *one = copies[i].statement->text;
		buffer_append(&text, one, strlen(one));
		buffer_append(&text, ";", i + 1 < len ? 1 : 2); /* the last with its NUL */
	}
	enum fate fate =
		buffer_failed(&text)
			? error_set(error, FATE_RETRY, ERR_MEMORY, "PostgreSQL, copying: no memory")
			: pipeline_copy_begin(store_pipeline(store), copies[0].statement, (const char *)text.data, error);
	buffer_done(&text);
	return fate;
}

/* The rows of one table. */
static enum fate copy_one(struct store *store, const struct copy *copies, size_t len, size_t at,
                          struct error *error)
{
	struct pipeline *pipeline = store_pipeline(store);
	const struct copy *copy = &copies[at];
	bool last = at + 1 == len;
	struct buffer buffer;
	int64_t rows = 0;

	buffer_init(&buffer, ROW_MAX + CHUNK_MAX);
	enum fate fate = put_rows(store, copy, &buffer, error);
	buffer_done(&buffer);
	if (fate == FATE_REJECT)
		pipeline_copy_give_up(pipeline);
	if (fate != FATE_OK)
		return fate;
	fate = last ? pipeline_copy_end(pipeline, copy->statement, &rows, error)
	            : pipeline_copy_next(pipeline, copy->statement, copies[at + 1].statement, &rows, error);
	if (fate != FATE_OK || rows == (int64_t)copy->rows)
		return fate;
	if (!last)
		pipeline_copy_give_up(pipeline);
	return error_set(error, FATE_FATAL, ERR_USAGE,
	                 "PostgreSQL, %s: %lld rows of %zu were taken: is there a trigger on the table?",
	                 copy->statement->name, (long long)rows, copy->rows);
}

enum fate store_copy(struct store *store, const struct copy *copies, size_t len, struct error *error)
{
	enum fate fate = begin(store, copies, len, error);

	for (size_t i = 0; i < len && fate == FATE_OK; i++)
		fate = copy_one(store, copies, len, i, error);
	return failed(store, fate, error);
}
