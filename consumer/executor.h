/*
 * executor.h - the executor's side: take the next session that may go on, run it, acknowledge it.
 *
 *	struct executor *executor;
 *	struct resumed resumed;
 *	struct error error;
 *
 *	if (executor_open(&executor, NULL, &error) != FATE_OK)
 *		...
 *	while (executor_take(executor, 1000, &resumed, &error) == FATE_OK) {
 *		if (!resumed.event)
 *			continue;
 *		if (!resumed.expired)
 *			run(&resumed.event->suspend, resumed.event->verdict);
 *		if (executor_done(executor, 10000, &error) != FATE_OK)
 *			...
 *	}
 *
 * Once, or at most once, or at least once? Fermata puts a resume onto the topic once (law L2). What becomes of
 * it in an executor is the caller's choice:
 *
 *   executor_done before the work   at most once: a crash in the work loses it
 *   executor_done after the work    at least once: a crash, or a group that has given the partition away
 *                                   meanwhile, runs it again
 *   exactly once                    executor_done after the work, and the work's own effects in one transaction
 *                                   with resume_id, refused when that id is there already
 *
 * Link fermata_executor. A handle is for one thread at a time. Several handles, or processes, of one group share
 * the sessions; those of one session_id come in order to one of them.
 */
#ifndef FERMATA_CONSUMER_EXECUTOR_H
#define FERMATA_CONSUMER_EXECUTOR_H

#include "core/kafka.h"

struct registry_settings; /* schemas/registry.h */

struct executor;

struct executor_settings {
	const char *bootstrap_servers; /* NULL: what the environment or properties say */
	const char *topic;             /* NULL: FERMATA_TOPICS_RESUMES, else fermata.resumes */
	const char *group;             /* NULL: fermata-executor; it remembers what was acknowledged */
	const char *agent;             /* only sessions of this agent; NULL: of all */
	const char *session_id;        /* only this session; NULL: all */
	/* Further properties of librdkafka (TLS, SASL). NULL: those of the environment (core/kafka_env.h). */
	const struct property *properties;
	size_t properties_len;
	size_t record_bytes; /* largest resume to expect; 0: 16 MiB */
	/* The schema registry, where the worker has one: its resumes are framed with ids of it. NULL: FERMATA_REGISTRY_URL of
	 * the environment, and _USER, _PASSWORD and so on. */
	const struct registry_settings *registry;
};

/* A session that may go on. event and all that it points to live until the next executor_take. */
struct resumed {
	const struct resume_event *event; /* NULL: the time was over and nothing came */
	bool expired;                     /* expires_at has passed: it should not be run any more */
	struct coordinates at;
};

/*
 * Connects and joins the group in the background. A group that has never acknowledged anything begins with the
 * oldest resume that the topic still has. settings NULL: everything from the environment (FERMATA_KAFKA_...).
 * FATAL for settings that cannot be.
 *
 * While the caller works on a session the handle is not polled; max.poll.interval.ms, after which the group gives
 * its partitions away, is an hour unless the properties say otherwise.
 */
FM_MUSTCHECK enum fate executor_open(struct executor **ret_executor, const struct executor_settings *settings,
                                     struct error *error);
/* Leaves the group. What was taken and not acknowledged will be taken again. NULL is fine. */
void executor_close(struct executor *executor);

/*
 * The next session for which the settings' agent and session_id hold; waits up to timeout_ms. One that was not
 * acknowledged is not given again by the same handle (unless the group moves), but to the next one.
 * RETRY: Kafka or the registry is away or the topic is missing (the message says which); what could not be read for
 * want of the registry is read again by the next call. REJECT: a record that is no resume;
 * it is passed over by the next call. FATAL: not authorised.
 */
FM_MUSTCHECK enum fate executor_take(struct executor *executor, int timeout_ms, struct resumed *ret_resumed,
                                     struct error *error);

/*
 * Acknowledges what was taken last, and with it all that came before it in its partition: the group will not
 * see it again. OK when there is nothing to acknowledge. RETRY with ERR_STALE: the group has given the partition to
 * somebody else meanwhile, who will run it too.
 */
FM_MUSTCHECK enum fate executor_done(struct executor *executor, int timeout_ms, struct error *error);

#endif
