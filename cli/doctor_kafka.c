/* doctor_kafka.c - what `fermata doctor` asks Kafka. */
#include "cli/connect.h"
#include "cli/doctor.h"
#include "cli/topic_plan.h"
#include "worker/rivals.h"

#include <inttypes.h>
#include <stdio.h>

#define ARENA_BYTES    ((size_t)16 << 20)
#define TRANSACTION_MS 10000
#define PROPERTIES_MAX 256

/* ---- topics ---- */

static void say_fault(void *context, bool halts, const char *text)
{
	doctor_say(context, halts ? FINDING_WRONG : FINDING_WARNING, "topics", NULL, "%s", text);
}

/* Where a resume goes hangs on the count, so a worker does not start with another one. */
static void compare_partitions(struct doctor *doctor, const char *topic, int32_t partitions)
{
	for (size_t i = 0; i < doctor->published_len; i++) {
		const struct resumes_topic *known = &doctor->published[i];
		if (view_equal_text(known->topic, topic) && known->partitions != partitions)
			doctor_say(doctor, FINDING_WRONG, "topics",
			           "route to a new topic: the partition count of a resumes topic is fixed for its life",
			           "topic %s has %" PRId32 " partitions, and had %" PRId32
			           " when it was first published to",
			           topic, partitions, known->partitions);
	}
}

/* Another cluster's offsets say nothing about this one's: a worker does not start there. */
static void compare_cluster(struct doctor *doctor, const char *cluster)
{
	struct view known = doctor->cluster;

	if (!view_is_null(known) && !view_equal_text(known, cluster))
		doctor_say(doctor, FINDING_WRONG, "Kafka",
		           "correct kafka.bootstrap.servers, or take the database of that cluster",
		           "the database belongs to the cluster %.*s, and this one is %s", (int)known.len,
		           (const char *)known.data, cluster);
}

/* Is it there? Then its settings are looked at too. */
static bool look_at_topic(struct doctor *doctor, struct reader *reader, struct topic_plan *plan)
{
	struct error error = { .fate = FATE_OK };
	int32_t partitions = 0;

	if (reader_partitions(reader, plan->name, KAFKA_PATIENCE_MS, &partitions, &error) != FATE_OK) {
		doctor_say_error(doctor, FINDING_WRONG, "topics", NULL, &error);
		return false;
	}
	if (partitions == 0) {
		doctor_say(doctor, FINDING_WRONG, "topics", "run `fermata topics create`, or correct topics.*",
		           "topic %s does not exist", plan->name);
		return false;
	}
	doctor_say(doctor, FINDING_OK, "topics", NULL, "%s has %" PRId32 " partitions", plan->name, partitions);
	if (plan->kind == TOPIC_RESUMES)
		compare_partitions(doctor, plan->name, partitions);
	if (topic_plan_look(doctor->cli->config, plan, &error) == FATE_OK)
		return true;
	doctor_say_error(doctor, FINDING_WARNING, "topics", NULL, &error);
	return false;
}

static void look_at_topics(struct doctor *doctor, struct reader *reader, struct arena *arena)
{
	struct error error = { .fate = FATE_OK };
	struct topic_plan *plans;
	size_t len;
	bool *looked = NULL;

	if (topic_plans_make(doctor->cli->config, arena, &plans, &len, &error) == FATE_OK)
		looked = arena_array(arena, len, sizeof(*looked));
	if (looked == NULL) {
		doctor_say_error(doctor, FINDING_WRONG, "topics", NULL, &error);
		return;
	}
	for (size_t i = 0; i < len; i++)
		looked[i] = look_at_topic(doctor, reader, &plans[i]);
	for (size_t i = 0; i < len; i++)
		if (looked[i])
			topic_plan_judge(doctor->cli->config, plans, len, i, say_fault, doctor);
}

/* ---- transactions ---- */

/* A producer of its own id: what a relay does first, and nothing else. */
static enum fate try_transactions(struct doctor *doctor, const char *id, struct error *error)
{
	struct property properties[PROPERTIES_MAX];
	struct producer_settings settings = { .client_id = "fermata-doctor",
		                                  .transactional_id = id,
		                                  .delivery_timeout_ms = TRANSACTION_MS / 2 };
	struct producer *producer = NULL;
	size_t len;
	const struct property *given = config_kafka(doctor->cli->config, KAFKA_PRODUCER, &len);
	enum fate fate;

	for (size_t i = 0; i < len && i + 1 < PROPERTIES_MAX; i++)
		properties[settings.properties_len++] = given[i];
	/* init_transactions waits twice as long. */
	properties[settings.properties_len++] = (struct property){ "transaction.timeout.ms", "10000" };
	settings.properties = properties;
	fate = producer_open(&producer, &settings, error);
	if (fate == FATE_OK)
		fate = producer_init_transactions(producer, TRANSACTION_MS, error);
	producer_close(producer);
	return fate;
}

static void check_transactions(struct doctor *doctor)
{
	struct error error = { .fate = FATE_OK };
	char id[256];

	snprintf(id, sizeof(id), "%s.doctor", config_text(doctor->cli->config, PARAM_WORKER_GROUP));
	if (try_transactions(doctor, id, &error) == FATE_OK)
		doctor_say(doctor, FINDING_OK, "transactions", NULL, "are possible, transactional.id %s", id);
	else
		doctor_say_error(
			doctor, FINDING_WRONG, "transactions",
			"see transaction.state.log.replication.factor and .min.isr of the brokers, and the ACLs of "
			"transactional ids",
			&error);
}

/* ---- the group ---- */

/* Workers on another database in the same group: each would take in a part of what comes. */
static void check_group(struct doctor *doctor, struct reader *reader)
{
	struct error error = { .fate = FATE_OK };
	char group[256], one[160];
	size_t count;

	if (doctor->mark[0] == '\0')
		return;
	rivals_group(doctor->cli->config, group, sizeof(group));
	if (reader_members_other(reader, group, RIVALS_CLIENT, doctor->mark, KAFKA_PATIENCE_MS, &count, one,
	                         sizeof(one), &error) != FATE_OK)
		doctor_say_error(doctor, FINDING_WARNING, "group", "allow DESCRIBE on the group", &error);
	else if (count > 0)
		doctor_say(doctor, FINDING_WRONG, "group",
		           "give each installation a worker.group and topics of its own, or correct postgres.dsn",
		           "%zu members of group %s work on another database (%s)", count, group, one);
	else
		doctor_say(doctor, FINDING_OK, "group", NULL, "no other installation works in group %s", group);
}

/* ---- Kafka ---- */

void doctor_kafka(struct doctor *doctor)
{
	struct error error = { .fate = FATE_OK };
	struct arena *arena = arena_new(ARENA_BYTES);
	struct reader *reader = NULL;
	char cluster[64];
	enum fate fate = connect_reader(doctor->cli, true, &reader, &error);

	if (fate == FATE_OK)
		fate = reader_cluster_id(reader, KAFKA_PATIENCE_MS, cluster, sizeof(cluster), &error);
	if (fate != FATE_OK || arena == NULL) {
		(void)!kafka_away(doctor->cli, &error);
		doctor_say_error(doctor, FINDING_WRONG, "Kafka", "start it, or correct kafka.bootstrap.servers",
		                 &error);
		doctor_say(doctor, FINDING_SKIPPED, "topics", NULL, "Kafka cannot be asked");
	} else {
		doctor_say(doctor, FINDING_OK, "Kafka", NULL, "can be reached, cluster %s", cluster);
		compare_cluster(doctor, cluster);
		check_group(doctor, reader);
		look_at_topics(doctor, reader, arena);
		doctor_waits(doctor, reader, cluster);
		check_transactions(doctor);
	}
	reader_close(reader, 2000);
	arena_free(arena);
}
