/* doctor_postgres.c - what `fermata doctor` asks PostgreSQL. */
#include "cli/connect.h"
#include "cli/doctor.h"
#include "cli/screen.h"
#include "store/store_facts.h"
#include "store/store_retention.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define OLDEST_VERSION          140000
#define SKEW_US                 INT64_C(2000000)
#define US_PER_S                INT64_C(1000000)
#define US_PER_MS               INT64_C(1000)
#define OVERDUE_US              INT64_C(259200000000) /* 3 days */
#define CONNECTIONS_OF_A_WORKER 4                     /* besides one a relay */

/* A crash of the server may not lose what was committed: the topics are only read up to there. */
static void judge_durability(struct doctor *doctor, const struct store_facts *facts)
{
	struct view commit = facts->synchronous_commit;

	if (!facts->fsync || !facts->full_page_writes)
		doctor_say(doctor, FINDING_WARNING, "durability", "set them to on",
		           "%s is off: a crash of the server may corrupt the database",
		           facts->fsync ? "full_page_writes" : "fsync");
	else if (view_equal_text(commit, "off"))
		doctor_say(doctor, FINDING_WARNING, "durability", "set synchronous_commit to on for this user",
		           "synchronous_commit is off: a crash of the server takes the last commits back");
	else
		doctor_say(doctor, FINDING_OK, "durability", NULL, "fsync is on, synchronous_commit is %.*s",
		           (int)commit.len, (const char *)commit.data);
}

/* asked, answered: our clock before and after the question. */
static void judge_clock(struct doctor *doctor, const struct store_facts *facts, int64_t asked,
                        int64_t answered)
{
	int64_t skew = facts->clock - (asked + (answered - asked) / 2);

	if (llabs(skew) > SKEW_US)
		doctor_say(doctor, FINDING_WARNING, "clock", "let NTP set the clocks",
		           "the clocks of this machine and of the database's are %" PRId64
		           " s apart: expiries are sent too early or too late by that",
		           (int64_t)llabs(skew) / US_PER_S);
	else
		doctor_say(doctor, FINDING_OK, "clock", NULL, "goes as the database's does");
}

static void judge_server(struct doctor *doctor, const struct store_facts *facts)
{
	size_t topics;
	int64_t wanted;

	(void)config_resumes_topics(doctor->cli->config, &topics);
	wanted = CONNECTIONS_OF_A_WORKER +
	         (int64_t)topics * config_number(doctor->cli->config, PARAM_TOPICS_PARTITIONS);
	if (facts->server_version < OLDEST_VERSION)
		doctor_say(doctor, FINDING_WRONG, "PostgreSQL", "take PostgreSQL 14 or later",
		           "version %d is too old", facts->server_version / 10000);
	else
		doctor_say(doctor, FINDING_OK, "PostgreSQL", NULL, "version %d.%d can be reached, and takes writes",
		           facts->server_version / 10000, facts->server_version % 10000);
	if (facts->max_connections < wanted)
		doctor_say(doctor, FINDING_WARNING, "PostgreSQL", "raise max_connections, or put a pooler before it",
		           "max_connections is %d, and a worker that holds all partitions wants %" PRId64,
		           facts->max_connections, wanted);
}

static void check_server(struct doctor *doctor, struct store *store)
{
	struct error error = { .fate = FATE_OK };
	struct store_facts facts;
	int64_t asked = clock_real_us();

	if (store_facts(store, doctor->arena, &facts, &error) != FATE_OK) {
		doctor_say_error(doctor, FINDING_WARNING, "PostgreSQL", NULL, &error);
		return;
	}
	int64_t answered = clock_real_us();
	judge_server(doctor, &facts);
	judge_durability(doctor, &facts);
	judge_clock(doctor, &facts, asked, answered);
}

/* Two groups on one database would not fence each other: a worker of another one does not start. */
static void check_installation(struct doctor *doctor, struct store *store)
{
	struct arena *arena = doctor->arena;
	struct view ours = view_of(config_text(doctor->cli->config, PARAM_WORKER_GROUP));
	struct error error = { .fate = FATE_OK };
	struct view group, cluster = VIEW_NULL;

	if (store_installed(store, arena, &group, &cluster, &error) != FATE_OK ||
	    store_installation_mark(store, doctor->mark, &error) != FATE_OK ||
	    store_published_topics(store, arena, &doctor->published, &doctor->published_len, &error) != FATE_OK)
		doctor_say_error(doctor, FINDING_WRONG, "installation", NULL, &error);
	else if (view_is_null(group))
		doctor_say(doctor, FINDING_OK, "installation", NULL,
		           "no worker has started yet: the first one's group stays");
	else if (!view_equal(group, ours))
		doctor_say(doctor, FINDING_WRONG, "installation",
		           "correct worker.group; or stop all other workers and start one with --adopt-group",
		           "the database is worked on by group %.*s, and worker.group is %.*s", (int)group.len,
		           (const char *)group.data, (int)ours.len, (const char *)ours.data);
	else
		doctor_say(doctor, FINDING_OK, "installation", NULL, "group %.*s, cluster %.*s", (int)group.len,
		           (const char *)group.data, (int)cluster.len, (const char *)cluster.data);
	doctor->cluster = cluster;
}

/* A day is dropped two days after its time at the latest. */
static void check_retention(struct doctor *doctor, struct store *store)
{
	int64_t keep = config_number(doctor->cli->config, PARAM_RETENTION_PAYLOAD) * US_PER_MS;
	int64_t rows = config_number(doctor->cli->config, PARAM_RETENTION_ROWS) * US_PER_MS;
	struct error error = { .fate = FATE_OK };
	char oldest[48], kept[48], kept_rows[48];
	const struct payload_day *first = NULL;
	struct payload_day *days;
	size_t len, overdue = 0;

	if (store_payload_days_held(store, clock_real_us() - keep - OVERDUE_US, doctor->arena, &days, &len,
	                            &error) != FATE_OK) {
		doctor_say_error(
			doctor, FINDING_WARNING, "retention",
			"grant this user EXECUTE on fermata.payload_days, and workers also on payload_day_drop", &error);
		return;
	}
	for (size_t i = len; i > 0; i--)
		if (days[i - 1].own) {
			first = &days[i - 1];
			overdue++;
		}
	if (first != NULL)
		doctor_say(doctor, FINDING_WARNING, "retention",
		           "start a worker; where one runs, its log says in lines `retention:` what hinders it",
		           "%zu days of sealed states should be gone by now, the oldest of %.10s", overdue,
		           clock_format(first->day_us, oldest, sizeof(oldest)));
	else
		doctor_say(doctor, FINDING_OK, "retention", NULL,
		           "sealed states go %s after they were settled, rows %s",
		           clock_span(keep, kept, sizeof(kept)),
		           rows > 0 ? clock_span(rows, kept_rows, sizeof(kept_rows)) : "stay for ever");
}

/* What only an operator can lead on. */
static void check_set_aside(struct doctor *doctor, struct store *store)
{
	struct error error = { .fate = FATE_OK };
	int64_t quarantined, in_doubt;

	if (store_set_aside(store, &quarantined, &in_doubt, &error) != FATE_OK) {
		doctor_say_error(doctor, FINDING_WARNING, "set aside", NULL, &error);
		return;
	}
	if (quarantined > 0)
		doctor_say(doctor, FINDING_WARNING, "set aside",
		           "`fermata quarantine list` says why; then `fermata quarantine retry` or `drop`",
		           "%" PRId64 " checkpoints are quarantined: nothing of them is published", quarantined);
	if (in_doubt > 0)
		doctor_say(doctor, FINDING_WARNING, "set aside",
		           "`fermata in-doubt list`; then `fermata in-doubt resume` or `drop`",
		           "%" PRId64 " checkpoints are in doubt: whether they were published cannot be known",
		           in_doubt);
	if (quarantined == 0 && in_doubt == 0)
		doctor_say(doctor, FINDING_OK, "set aside", NULL, "nothing is quarantined or in doubt");
}

static const struct {
	const char *why;
	const char *mend;
} waits[] = {
	[WAITS_ALARM] = { "is left alone: its records and its position do not fit together",
	                  "the log of a worker says in a line ALARM what is wrong" },
	[WAITS_REGISTRY] = { "waits for a schema", "the schema registry has to answer, or a file of schemas.path "
	                                           "has to be mended (above)" },
	[WAITS_BREAKER] = { "is stopped: most of its records become dead letters",
	                    "the log of a worker says in a line STOPPED why; mend that, or `fermata intake "
	                    "let-through`" },
};

/* The cluster is that of the installation: before its first worker there is none. */
static void check_positions(struct doctor *doctor, struct store *store)
{
	struct error error = { .fate = FATE_OK };
	struct position *rows = NULL;
	size_t len = 0;
	char cluster[64];

	snprintf(cluster, sizeof(cluster), "%.*s", (int)doctor->cluster.len, (const char *)doctor->cluster.data);
	if (store_positions(store, cluster, doctor->arena, &rows, &len, &error) != FATE_OK) {
		doctor_say_error(doctor, FINDING_WARNING, "positions", NULL, &error);
		return;
	}
	for (size_t i = 0; i < len; i++)
		if (rows[i].waits != WAITS_NO)
			doctor_say(doctor, FINDING_WARNING, "positions", waits[rows[i].waits].mend,
			           "%.*s [%" PRId32 "] at offset %" PRId64 " %s", (int)rows[i].topic.len,
			           (const char *)rows[i].topic.data, rows[i].partition, rows[i].next,
			           waits[rows[i].waits].why);
}

void doctor_postgres(struct doctor *doctor)
{
	struct error error = { .fate = FATE_OK };
	struct store *store = NULL;

	if (connect_store_bare(doctor->cli, &store, &error) != FATE_OK) {
		doctor_say_error(doctor, FINDING_WRONG, "PostgreSQL", NULL, &error);
		return;
	}
	check_server(doctor, store);
	if (store_check_version(store, &error) != FATE_OK) {
		doctor_say_error(doctor, FINDING_WRONG, "tables", NULL, &error);
	} else {
		doctor_say(doctor, FINDING_OK, "tables", NULL, "are those of this version");
		doctor->migrated = true;
		check_installation(doctor, store);
		check_retention(doctor, store);
		check_set_aside(doctor, store);
		check_positions(doctor, store);
	}
	store_close(store);
}
