/*
 * dev_kafka.h - a real Apache Kafka of our own (one node, KRaft, loopback, from a directory of jars), and what
 * has to be asked of one that is somebody else's.
 */
#ifndef FERMATA_CLI_DEV_KAFKA_H
#define FERMATA_CLI_DEV_KAFKA_H

#include "cli/dev_process.h"
#include "core/kafka.h"

struct kafka {
	struct process process;
	char log[DEV_PATH_MAX];
	char bootstrap[64]; /* "127.0.0.1:24811" */
	char version[32];   /* "4.1.1", or "" when the jars do not tell */
};

/* Does the directory hold the jars of Kafka? Its version is told by their names. */
bool kafka_has_jars(const char *libs, char ret_version[32]);
/* ~/.cache/fermata/kafka-VERSION/libs, where scripts/kafka puts the jars. False: not there. */
bool kafka_cached_jars(char ret_libs[DEV_PATH_MAX]);
/* Is there a java in PATH? */
bool kafka_has_java(void);

/*
 * Starts a broker below root. FATAL with ERR_SERVICE: no java, or no jars in libs. RETRY with ERR_SERVICE: it
 * does not come up. kafka->log names the log to look at from the start. What was started is stopped by
 * kafka_stop in any case.
 */
FM_MUSTCHECK enum fate kafka_start(struct kafka *kafka, const char *libs, const char *root, const char *logs,
                                   struct error *error);
/* Its data are thrown away afterwards: it is killed. */
void kafka_stop(struct kafka *kafka);

/* Does a broker answer with these properties? RETRY with ERR_SERVICE: none does, within timeout_ms; as
 * process_pause when we were asked to end. */
FM_MUSTCHECK enum fate kafka_answers(const struct property *properties, size_t len, int timeout_ms,
                                     struct error *error);
/* Deletes topics that we made in somebody else's cluster; those that are not there count as deleted. */
FM_MUSTCHECK enum fate kafka_delete_topics(const struct property *properties, size_t len,
                                           const char *const *names, size_t names_len, int timeout_ms,
                                           struct error *error);
/* The same for groups, which have no members any more. */
FM_MUSTCHECK enum fate kafka_delete_groups(const struct property *properties, size_t len,
                                           const char *const *names, size_t names_len, int timeout_ms,
                                           struct error *error);

#endif
