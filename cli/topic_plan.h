/*
 * topic_plan.h - the topics of an installation: how they are made (contract.md, "Topics"), and which promise a
 * topic that is made otherwise breaks.
 */
#ifndef FERMATA_CLI_TOPIC_PLAN_H
#define FERMATA_CLI_TOPIC_PLAN_H

#include "cli/cli.h"
#include "core/kafka.h"

enum topic_kind { TOPIC_SUSPENDS, TOPIC_APPROVALS, TOPIC_RESUMES, TOPIC_GATES, TOPIC_DEAD_LETTERS };

/* What counts of a topic's settings. */
struct topic_facts {
	char timestamp_type[32];
	char cleanup[32];
	int64_t retention_ms;    /* -1: for ever */
	int64_t retention_bytes; /* -1: any number */
	int64_t segment_ms;
	int64_t max_message_bytes;
};

#define TOPIC_SETTINGS_MAX 5

struct topic_plan {
	enum topic_kind kind;
	const char *name;
	struct topic_facts facts; /* as it is planned, or, once it was looked at, as it is */
	struct property settings[TOPIC_SETTINGS_MAX];
	size_t settings_len;
};

/* All topics, each name once: suspends, approvals, resumes (those of the routes too), gates, dead letters.
 * Lives in the arena. */
FM_MUSTCHECK enum fate topic_plans_make(const struct config *config, struct arena *arena,
                                        struct topic_plan **ret_plans, size_t *ret_len, struct error *error);

/* Reads the settings of a topic that exists into plan->facts. REJECT ERR_NO: there is no such topic. */
FM_MUSTCHECK enum fate topic_plan_look(const struct config *config, struct topic_plan *plan,
                                       struct error *error);

/* Says, for the index-th topic, each promise that its facts break: what is so, what that breaks, what to do.
 * halts: the work stands still, or will. Pure: looks only at the facts of all of them and at the limits. */
typedef void topic_warning(void *context, bool halts, const char *text);
void topic_plan_judge(const struct config *config, const struct topic_plan *plans, size_t len, size_t index,
                      topic_warning *say, void *context);

#endif
