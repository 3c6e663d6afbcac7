/* doctor_waits.c - what `fermata doctor` looks at in Kafka and in the database together: is what is to be read still
 * there, and are records kept for as long as what came of them waits? */
#include "cli/connect.h"
#include "cli/doctor.h"
#include "worker/waits.h"

#include <inttypes.h>
#include <string.h>

#define ARENA_BYTES ((size_t)1 << 20)

static void say_wait(void *context, const char *what, const char *mend)
{
	doctor_say(context, FINDING_WARNING, "waits", mend, "%s", what);
}

static void check_waits(struct doctor *doctor, struct reader *reader, struct store *store,
                        struct arena *arena)
{
	struct error error = { .fate = FATE_OK };
	struct waits waits;

	if (waits_ask(doctor->cli->config, reader, store, NULL, KAFKA_PATIENCE_MS, arena, &waits, &error) !=
	    FATE_OK)
		doctor_say_error(doctor, FINDING_WARNING, "waits", NULL, &error);
	else if (waits_judge(&waits, clock_real_us(), say_wait, doctor) == 0)
		doctor_say(doctor, FINDING_OK, "waits", NULL, "%" PRId64 " checkpoints wait, and are on %s too",
		           waits.found.waiting, config_text(doctor->cli->config, PARAM_TOPICS_SUSPENDS));
}

/* A worker that comes back to this raises the alarm; one that runs has raised it. */
static void check_position(struct doctor *doctor, struct reader *reader, const struct position *row,
                           const char *topic)
{
	struct error error = { .fate = FATE_OK };
	int64_t low, end;

	if (!view_equal_text(row->topic, topic) ||
	    reader_range(reader, topic, row->partition, KAFKA_PATIENCE_MS, &low, &end, &error) != FATE_OK)
		return; /* that the topic, or a partition of it, is not there is said elsewhere */
	if (row->next < low)
		doctor_say(doctor, FINDING_WARNING, "positions",
		           "see docs/recovery.md, \"A partition is left alone\": rebuild, or accept what is missing",
		           "%s [%" PRId32 "]: what stood from offset %" PRId64 " to %" PRId64
		           " is gone, and was never taken in: a worker leaves the partition alone",
		           topic, row->partition, row->next, low - 1);
	else if (row->next > end)
		doctor_say(doctor, FINDING_WARNING, "positions",
		           "see docs/recovery.md, \"A partition is left alone\": rebuild, or accept what is missing",
		           "%s [%" PRId32 "] ends at offset %" PRId64 ", and the database has read it up to %" PRId64
		           ": it was made anew, or this is another cluster",
		           topic, row->partition, end, row->next);
}

static void check_ranges(struct doctor *doctor, struct reader *reader, struct store *store,
                         struct arena *arena, const char *cluster)
{
	const char *suspends = config_text(doctor->cli->config, PARAM_TOPICS_SUSPENDS);
	const char *approvals = config_text(doctor->cli->config, PARAM_TOPICS_APPROVALS);
	struct error error = { .fate = FATE_OK };
	struct position *rows;
	size_t len;

	if (store_positions(store, cluster, arena, &rows, &len, &error) != FATE_OK) {
		doctor_say_error(doctor, FINDING_WARNING, "positions", NULL, &error);
		return;
	}
	for (size_t i = 0; i < len; i++) {
		check_position(doctor, reader, &rows[i], suspends);
		check_position(doctor, reader, &rows[i], approvals);
	}
}

void doctor_waits(struct doctor *doctor, struct reader *reader, const char *cluster)
{
	struct error error = { .fate = FATE_OK };
	struct arena *arena = arena_new(ARENA_BYTES);
	struct store *store = NULL;

	if (!doctor->migrated || arena == NULL || connect_store_bare(doctor->cli, &store, &error) != FATE_OK) {
		doctor_say(doctor, FINDING_SKIPPED, "waits", NULL, "the database cannot be asked");
	} else {
		check_ranges(doctor, reader, store, arena, cluster);
		check_waits(doctor, reader, store, arena);
	}
	store_close(store);
	arena_free(arena);
}
