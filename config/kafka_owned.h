/* kafka_owned.h - which properties of librdkafka are not the user's, and which are secrets. */
#ifndef FERMATA_CONFIG_KAFKA_OWNED_H
#define FERMATA_CONFIG_KAFKA_OWNED_H

#include <stdbool.h>
#include <stddef.h>

/* A property that the protocol sets for itself. Where a row of the table has several names, they are
 * aliases or belong together, with blanks between them. */
struct kafka_owned {
	const char *names;
	const char *reason; /* follows "is refused: " */
};

extern const struct kafka_owned kafka_owned_table[];
extern const size_t kafka_owned_table_len;

/* Why the property (without "kafka." or a side) cannot be set, or NULL when it can. Static text. */
const char *kafka_owned_reason(const char *name);

/* Should its value never be shown? By the words in its name, so that properties of later versions of
 * librdkafka are covered: rather one masked too many. */
bool kafka_is_secret(const char *name);

#endif
