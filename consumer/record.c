#include "consumer/reader.h"

#include <librdkafka/rdkafka.h>
#include <string.h>

void record_done(struct record *record)
{
	if (record->message)
		rd_kafka_message_destroy(record->message);
	record->message = NULL;
	record->key = VIEW_NULL;
	record->value = VIEW_NULL;
}

/* NULL when there are none or librdkafka cannot parse them. The list is the message's. */
static rd_kafka_headers_t *headers_of(const struct record *record)
{
	rd_kafka_headers_t *headers = NULL;

	if (!record->message || rd_kafka_message_headers(record->message, &headers))
		return NULL;
	return headers;
}

static bool copy_header(struct arena *arena, struct header *header, const char *name, const void *value,
                        size_t len)
{
	header->name = arena_text(arena, view_of(name));
	header->value = value ? arena_copy(arena, (struct view){ value, len }) : VIEW_NULL;
	return header->name && (!value || header->value.data);
}

enum fate record_headers(const struct record *record, struct arena *arena, struct header **ret_headers,
                         size_t *ret_len, struct error *error)
{
	rd_kafka_headers_t *list = headers_of(record);
	size_t len = list ? rd_kafka_header_cnt(list) : 0;
	struct header *headers = arena_array(arena, len, sizeof(*headers));

	for (size_t i = 0; headers && i < len; i++) {
		const char *name;
		const void *value;
		size_t value_len;

		if (rd_kafka_header_get_all(list, i, &name, &value, &value_len) ||
		    !copy_header(arena, &headers[i], name, value, value_len))
			headers = NULL;
	}
	if (!headers)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "could not copy the headers of a record");
	*ret_headers = headers;
	*ret_len = len;
	return FATE_OK;
}

struct view record_header(const struct record *record, const char *name)
{
	rd_kafka_headers_t *list = headers_of(record);
	const void *value;
	size_t len;

	if (!list || rd_kafka_header_get_last(list, name, &value, &len))
		return VIEW_NULL;
	return (struct view){ value, len };
}
