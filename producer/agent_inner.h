/* agent_inner.h - what agent.c and agent_suspension.c share. Not for others. */
#ifndef FERMATA_PRODUCER_AGENT_INNER_H
#define FERMATA_PRODUCER_AGENT_INNER_H

#include "producer/agent.h"

struct suspension {
	struct suspend_event event; /* its views live in the arena, or are borrowed from a resume */
	struct arena *arena;
	struct buffer value; /* the encoded record, made by the first send; the same ever after */
	char id[UUID_TEXT_LEN + 1];
	const char *traceparent; /* or NULL */
	const char *tracestate;
	struct error fault; /* the first thing that was wrong with a part; fate OK: none */
};

/* How much one suspension may hold while it is built; the codec's own limit is the one that counts. */
#define SUSPENSION_BYTES_MAX ((size_t)256 * 1024 * 1024)
#define VALUE_BYTES_MAX      ((size_t)64 * 1024 * 1024)

#endif
