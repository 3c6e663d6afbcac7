/*
 * kafka_glue.h - what consumer/ and producer/ need alike and may not have from each other: the table of
 * librdkafka's errors, the properties that the protocol owns, its log lines. No type of librdkafka in here,
 * errors go by their names (rd_kafka_err2name), so that core knows no foreign library.
 */
#ifndef FERMATA_CORE_KAFKA_GLUE_H
#define FERMATA_CORE_KAFKA_GLUE_H

#include "core/kafka.h"

/*
 * Fills *error for librdkafka's error `name` ("UNKNOWN_TOPIC_OR_PART", "_TRANSPORT", ...) and returns its
 * fate. The message is "<fmt>: <reason>" and, where there is one, "; <what to do>". A name that the table
 * does not have is RETRY, ERR_SERVICE: the world may mend, and the name is kept in error->native.
 */
enum fate kafka_error(struct error *error, const char *name, const char *reason, const char *fmt, ...)
	FM_PRINTF(4, 5);

/* The fate alone, for those who only need to know how bad it is. */
enum fate kafka_error_fate(const char *name);

/* Does the protocol own this property of librdkafka ("group.id", "isolation.level", ...)? Such a one is not
 * the user's to set, neither for reading nor for writing; config refuses it and so do the handles. */
bool kafka_property_owned(const char *name);

/* Sets one property; true when it was taken, else writes the reason (as librdkafka gives it) to why. */
typedef bool kafka_property_setter(void *context, const char *name, const char *value, char *why,
                                   size_t why_cap);

/* Hands the user's properties to set, one by one. FATAL ERR_USAGE for an owned one and for one that is not
 * taken; the message names the property and never its value, which may be a secret. */
FM_MUSTCHECK enum fate kafka_properties_apply(const struct property *properties, size_t len,
                                              kafka_property_setter *set, void *context, struct error *error);
/* The value of a property among the user's; NULL when it is not there. The last one counts. */
const char *kafka_property_find(const struct property *properties, size_t len, const char *name);

/* A line of librdkafka's own: severity as in syslog(3). Warnings and worse are warnings here (they are
 * never the end of us), the rest is for debugging. room: "consumer" or "producer". */
void kafka_log(const char *room, int severity, const char *facility, const char *text);

/* Milliseconds of a Kafka timestamp as microseconds; TIME_NONE when there is none (negative). */
int64_t kafka_time_us(int64_t kafka_ms);

#endif
