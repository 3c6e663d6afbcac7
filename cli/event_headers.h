/* event_headers.h - CloudEvents in binary mode, as everything that Fermata writes has them. */
#ifndef FERMATA_CLI_EVENT_HEADERS_H
#define FERMATA_CLI_EVENT_HEADERS_H

#include "core/kafka.h"

struct event_headers {
	struct header list[8];
	size_t len;
	char id[UUID_TEXT_LEN + 1];
	char time[40];
};

/* id: the record's own; type: "fermata.v1.SuspendEvent", kept; at: when it happened. TRACEPARENT and TRACESTATE of the
 * environment go along, where they are (the convention of OpenTelemetry for programs that start others). */
void event_headers_fill(struct event_headers *headers, const struct uuid *id, const char *type, int64_t at);

#endif
