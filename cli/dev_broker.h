/*
 * dev_broker.h - which Kafka a demonstration runs on: the user's own, a real one of ours, or the mock cluster,
 * in this order, unless the user says which.
 */
#ifndef FERMATA_CLI_DEV_BROKER_H
#define FERMATA_CLI_DEV_BROKER_H

#include "cli/dev_kafka.h"
#include "cli/dev_mock.h"
#include "config/config.h"

enum broker_kind {
	BROKER_YOURS, /* that of kafka.bootstrap.servers; our topics have names of their own and go at the end */
	BROKER_KAFKA, /* Apache Kafka, ours */
	BROKER_MOCK,
};

#define BROKER_TOPICS 5

struct broker {
	enum broker_kind kind;
	const char *why; /* BROKER_MOCK: why no real one is used */
	const struct config *config;
	char libs[DEV_PATH_MAX];
	struct kafka kafka;
	struct mock *mock;
	const char *bootstrap;
	char group[32];                 /* "fermata", or a name made up for the run */
	char topics[BROKER_TOPICS][64]; /* suspends, approvals, resumes, gates, dead letters */
	bool topics_made;               /* there may be some to delete */
};

/* The keys of topics[], without their section: "suspends", ... */
extern const char *const broker_topic_keys[BROKER_TOPICS];

struct broker_wish {
	const char *libs; /* of --kafka-libs; NULL: not given */
	const char *name; /* the first part of names that are made up: "demo" */
	bool mock;        /* that and no other */
	bool yours;       /* the user's, also where kafka.bootstrap.servers is its default */
};

/* Chooses. FATAL with ERR_USAGE when libs is too long a path. */
FM_MUSTCHECK enum fate broker_choose(struct broker *broker, const struct config *config,
                                     const struct broker_wish *wish, struct error *error);
/* Starts it, or looks whether it is there. As kafka_start, mock_start and kafka_answers. */
FM_MUSTCHECK enum fate broker_start(struct broker *broker, const char *root, const char *logs,
                                    struct error *error);
/* Appends the sections of the configuration that say how to reach it, and the group and topics, [worker] last.
 * The user's properties that do not fit on a line go to files in root. FATAL as files_write. */
FM_MUSTCHECK enum fate broker_settings(const struct broker *broker, const char *root, struct buffer *out,
                                       struct error *error);
/* Appends a line of the configuration: prefix and key, and the value in double quotes. */
void broker_put_setting(struct buffer *out, const char *prefix, const char *key, const char *value);
/* Puts the same into our environment, for agents and executors, which have no file of settings. */
FM_MUSTCHECK enum fate broker_environment(const struct broker *broker, struct error *error);
/* The mock cluster's topics: it has to be told from inside. */
FM_MUSTCHECK enum fate broker_create_topics(struct broker *broker, struct error *error);
/* Deletes topics and the groups of the workers, which have ended, whosever broker it is. As kafka_delete_topics. */
FM_MUSTCHECK enum fate broker_delete(const struct broker *broker, const char *const *topics,
                                     size_t topics_len, struct error *error);
/* Stops it; from the user's, what we made is deleted. False: that did not work, and *error says why. */
bool broker_stop(struct broker *broker, struct error *error);

#endif
