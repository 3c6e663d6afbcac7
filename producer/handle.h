/* handle.h - a librdkafka handle for writing, as producer.c and topics.c need it. Not for other rooms. */
#ifndef FERMATA_PRODUCER_HANDLE_H
#define FERMATA_PRODUCER_HANDLE_H

#include "core/kafka.h"

#include <librdkafka/rdkafka.h>

/* A configuration with the user's properties on top of our defaults, and librdkafka's log lines going to
 * ours. NULL defaults end the list; one that this librdkafka does not know is passed over. */
FM_MUSTCHECK enum fate handle_conf(rd_kafka_conf_t **ret_conf, const struct property *defaults,
                                   const struct property *properties, size_t properties_len,
                                   struct error *error);
/* Takes conf, also when it fails (FATAL). */
FM_MUSTCHECK enum fate handle_open(rd_kafka_t **ret_rk, rd_kafka_conf_t *conf, struct error *error);
/* Throws away what is in its queues, ends its threads; at most a second or two. deadline.h says what
 * becomes of those that do not end. NULL is fine. opaque is freed once nothing can use it any more.
 * in_transaction: one is open, and is left so. */
void handle_close(rd_kafka_t *rk, void *opaque, bool in_transaction);

/* For a property of ours; false when this librdkafka does not know the name or the value. */
bool handle_set(rd_kafka_conf_t *conf, const char *name, const char *value);
bool handle_set_number(rd_kafka_conf_t *conf, const char *name, size_t value);

#endif
