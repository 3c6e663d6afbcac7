/*
 * connect.h - what a command needs of the other rooms, opened by the configuration. On failure the error is
 * filled with who could not be reached; what is opened is closed by the room's own close.
 */
#ifndef FERMATA_CLI_CONNECT_H
#define FERMATA_CLI_CONNECT_H

#include "cli/cli.h"
#include "consumer/reader.h"
#include "producer/producer.h"
#include "schemas/codec.h"
#include "store/store.h"
#include "vault/vault.h"

/* How long a command that runs once waits for Kafka to say anything. */
#define KAFKA_PATIENCE_MS 10000
/* How long a topic that was just made may be unknown to some broker. */
#define NEW_TOPIC_MS 2000

/* A connection to a database that is migrated. */
FM_MUSTCHECK enum fate connect_store(const struct cli *cli, struct store **ret_store, struct error *error);
/* The same without a look at its version. */
FM_MUSTCHECK enum fate connect_store_bare(const struct cli *cli, struct store **ret_store,
                                          struct error *error);
FM_MUSTCHECK enum fate connect_vault(const struct cli *cli, struct vault **ret_vault, struct error *error);
/* A reader of partitions of our choosing, read_committed unless uncommitted. */
FM_MUSTCHECK enum fate connect_reader(const struct cli *cli, bool uncommitted, struct reader **ret_reader,
                                      struct error *error);
/* A producer that knows the topic already: no broker, or no such topic, is noticed here. */
FM_MUSTCHECK enum fate connect_producer(const struct cli *cli, const char *topic, producer_report *report,
                                        void *context, struct producer **ret_producer, struct error *error);

/* Is there a topic of that name? FATAL ERR_USAGE: there is none. */
FM_MUSTCHECK enum fate connect_topic(const struct cli *cli, const char *topic, struct error *error);

/* The largest resume or dead letter that can come of records within limits.record_bytes. */
size_t widest_record(const struct config *config);
/* Fills *error: FATAL ERR_USAGE. */
enum fate no_such_topic(const char *topic, struct error *error);
/* Puts the brokers' address before the message of an error of Kafka and what to do behind it; returns its
 * fate. */
enum fate kafka_away(const struct cli *cli, struct error *error);

#endif
