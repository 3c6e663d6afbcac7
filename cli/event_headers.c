#include "cli/event_headers.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define TRACEPARENT_LEN 55
#define TRACESTATE_MAX  512

static void add(struct event_headers *headers, const char *name, const char *value)
{
	headers->list[headers->len++] = (struct header){ name, view_of(value) };
}

/* W3C Trace Context, version 00: 00-<32 hex>-<16 hex>-<2 hex>. */
static bool is_traceparent(const char *text)
{
	if (strlen(text) != TRACEPARENT_LEN)
		return false;
	for (size_t i = 0; i < TRACEPARENT_LEN; i++) {
		bool dash = i == 2 || i == 35 || i == 52;
		if (dash ? text[i] != '-' : !isxdigit((unsigned char)text[i]) || isupper((unsigned char)text[i]))
			return false;
	}
	return true;
}

static void add_trace(struct event_headers *headers)
{
	const char *parent = getenv("TRACEPARENT"), *state = getenv("TRACESTATE");

	if (parent == NULL || !is_traceparent(parent))
		return;
	add(headers, "traceparent", parent);
	if (state != NULL && *state != '\0' && strlen(state) <= TRACESTATE_MAX)
		add(headers, "tracestate", state);
}

void event_headers_fill(struct event_headers *headers, const struct uuid *id, const char *type, int64_t at)
{
	headers->len = 0;
	uuid_format(id, headers->id);
	clock_format(at, headers->time, sizeof(headers->time));
	add(headers, "ce_specversion", "1.0");
	add(headers, "ce_id", headers->id);
	add(headers, "ce_source", "/fermata/cli");
	add(headers, "ce_type", type);
	add(headers, "ce_time", headers->time);
	add(headers, "content-type", "application/avro");
	add_trace(headers);
}
