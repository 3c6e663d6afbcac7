/*
 * intake_breaker.c - a partition most of whose records become dead letters is stopped before the letters of the batch
 * that shows it are sent: its position stays, nothing of it is taken in, and the others go on. Its row says so, so that
 * whoever gets the partition next knows. Each minute it is read again: when its records are no longer mostly dead, it
 * goes on; an operator can have them let through as dead letters.
 */
#include "worker/intake.h"
#include "worker/learn.h"

#include "core/log.h"
#include "core/metrics.h"

#include <inttypes.h>
#include <stdlib.h>

#define PROBE_MS 60000

/* ---- what others ask of it ---- */

/* For readiness, the gauge, and a drain, which waits for a partition while it is being tried. */
static void count_stopped(struct intake *intake)
{
	int stopped = 0, probing = 0;
	for (size_t i = 0; i < intake->parts_len; i++) {
		stopped += intake->parts[i].stopped ? 1 : 0;
		probing += intake->parts[i].stopped && intake->parts[i].probing ? 1 : 0;
	}
	atomic_store(&intake->worker->probing_parts, probing);
	atomic_store(&intake->worker->stopped_parts, stopped);
	metrics_set(METRIC_STOPPED, stopped);
}

enum fate intake_breakers_new(struct intake *intake, struct error *error)
{
	size_t bytes = breaker_bytes(intake->breaker_records);
	uint8_t *outcomes = calloc(intake->parts_len + 1, bytes + 1);
	if (outcomes == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for an assignment");
	free(intake->outcomes);
	intake->outcomes = outcomes;
	for (size_t i = 0; i < intake->parts_len; i++)
		breaker_init(&intake->parts[i].breaker, outcomes + i * bytes, intake->breaker_records);
	count_stopped(intake);
	return FATE_OK;
}

/* ---- a run of items ---- */

static bool counts(const struct part *part, const struct item *item)
{
	return item->record.at.offset >= part->let_through;
}

/* What a run of items has of one part. */
struct share {
	bool *dead; /* of those that count */
	size_t len;
	const struct item *first, *last_dead; /* of those */
	bool let_through;                     /* there are others */
};

static struct share share_of(const struct intake *intake, size_t part, struct item *const *items, size_t len,
                             bool *dead)
{
	struct share share = { .dead = dead };
	for (size_t i = 0; i < len; i++) {
		if (items[i]->part != part)
			continue;
		if (!counts(&intake->parts[part], items[i])) {
			share.let_through = true;
			continue;
		}
		share.first = share.first == NULL ? items[i] : share.first;
		share.last_dead = items[i]->dead ? items[i] : share.last_dead;
		dead[share.len++] = items[i]->dead;
	}
	return share;
}

/* One that is stopped is tried with what there is: most of it must be good. */
static bool fails(const struct part *part, const struct share *share)
{
	size_t bad = 0;
	if (!part->stopped)
		return breaker_trips(&part->breaker, share->dead, share->len);
	for (size_t i = 0; i < share->len; i++)
		bad += share->dead[i] ? 1 : 0;
	return 2 * bad > share->len;
}

static enum fate stop(struct intake *intake, struct part *part, const struct share *share,
                      struct error *error)
{
	const struct item *last_dead = share->last_dead;
	part->stopped = true;
	part->probing = false;
	part->probe_at_ms = clock_mono_ms() + PROBE_MS;
	part->tried_news = learn_count(intake->worker);
	part->stopped_at = share->first->record.at.offset;
	breaker_reset(&part->breaker, BREAKER_LEAST);
	count_stopped(intake);
	log_write(LOG_LEVEL_ERROR, "intake",
	          "STOPPED %s [%" PRId32 "] at offset %" PRId64
	          ": most of its records become dead letters (the last one, offset %" PRId64
	          ": %s: %s); none of these is sent, the others go on. Mend what it says: each minute it is "
	          "tried again. Or "
	          "`fermata intake let-through %s %" PRId32 " --count N` sends the next N on as dead letters",
	          part->topic, part->partition, part->stopped_at, last_dead->record.at.offset,
	          error_code_name(last_dead->why.code), last_dead->why.message, part->topic, part->partition);
	return error_set(error, FATE_RETRY, ERR_STALE, "%s [%" PRId32 "] is stopped; the batch again without it",
	                 part->topic, part->partition);
}

static enum fate check_part(struct intake *intake, size_t at, struct item *const *items, size_t len,
                            bool *dead, struct error *error)
{
	struct part *part = &intake->parts[at];
	struct share share = share_of(intake, at, items, len, dead);
	if (share.last_dead == NULL || !fails(part, &share))
		return FATE_OK;
	if (share.let_through) /* in halves, until those are by themselves that an operator lets through */
		return error_set(error, FATE_REJECT, ERR_CONFLICT, "%s [%" PRId32 "] is to be stopped in the middle",
		                 part->topic, part->partition);
	return stop(intake, part, &share, error);
}

enum fate intake_breaker_check(struct intake *intake, struct item *const *items, size_t len,
                               struct error *error)
{
	if (intake->breaker_records == 0)
		return FATE_OK;
	bool *dead = arena_array(intake->work, len, sizeof(*dead));
	if (dead == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a batch");
	for (size_t i = 0; i < intake->parts_len; i++) {
		enum fate fate = check_part(intake, i, items, len, dead, error);
		if (fate != FATE_OK)
			return fate;
	}
	return FATE_OK;
}

static void go_on(struct intake *intake, struct part *part, const char *why)
{
	part->stopped = part->probing = false;
	count_stopped(intake);
	log_info("intake", "%s [%" PRId32 "] goes on at offset %" PRId64 ": %s", part->topic, part->partition,
	         part->durable, why);
}

void intake_breaker_note(struct intake *intake, struct item *const *items, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		struct part *part = &intake->parts[items[i]->part];
		if (!counts(part, items[i]))
			continue;
		breaker_add(&part->breaker, items[i]->dead);
		if (part->stopped)
			go_on(intake, part, "its records are no longer mostly dead letters");
	}
}

/* ---- with the rows of kafka_offset ---- */

static bool is_due(const struct intake *intake, const struct part *part)
{
	return clock_mono_ms() >= part->probe_at_ms || learn_count(intake->worker) != part->tried_news;
}

/* An operator's word, and that of whoever had the partition before. */
static void take_row(struct intake *intake, struct part *part, const struct position *row)
{
	bool news = row->let_through > part->let_through;
	part->let_through = row->let_through;
	part->said = row->waits == WAITS_BREAKER;
	if (part->said && !part->stopped) { /* tried at once: it may have been mended meanwhile */
		part->stopped = true;
		part->probe_at_ms = clock_mono_ms();
		part->tried_news = learn_count(intake->worker);
		breaker_reset(&part->breaker, BREAKER_LEAST);
	}
	if (part->stopped && news && part->let_through > row->next) {
		breaker_reset(&part->breaker, BREAKER_LEAST);
		go_on(intake, part, "an operator lets its records through as dead letters");
	}
}

bool intake_breaker_place(struct intake *intake, struct part *part, const struct position *row, bool at_end)
{
	if (intake->breaker_records == 0)
		return true;
	if (row != NULL)
		take_row(intake, part, row);
	if (part->stopped && at_end)
		go_on(intake, part, "nothing stands there any more");
	part->probing = part->stopped && is_due(intake, part);
	if (part->stopped && row == NULL) { /* so that there is a row that can say it */
		part->received = part->stopped_at;
		intake->moved = true;
	}
	count_stopped(intake);
	return !part->stopped || part->probing;
}

static bool wants_restart(const struct intake *intake, const struct part *part, const struct position *row)
{
	return part->stopped && !part->probing && (is_due(intake, part) || row->let_through > part->let_through);
}

static enum fate say(struct intake *intake, struct part *part, struct error *error)
{
	enum position_waits waits = part->stopped ? WAITS_BREAKER : WAITS_NO;
	if (part->stopped == part->said || part->alarmed || part->durable == POSITION_NEW)
		return FATE_OK;
	enum fate fate = store_position_waits(intake->store, intake->worker->cluster_id, part->topic,
	                                      part->partition, waits, error);
	part->said = fate == FATE_OK ? part->stopped : part->said;
	return fate;
}

enum fate intake_breaker_say(struct intake *intake, struct error *error)
{
	enum fate fate = FATE_OK;
	for (size_t i = 0; i < intake->parts_len && fate == FATE_OK && intake->breaker_records > 0; i++)
		fate = say(intake, &intake->parts[i], error);
	return fate;
}

enum fate intake_breaker_look(struct intake *intake, const struct position *rows, size_t len,
                              struct error *error)
{
	bool restart = false;
	if (intake->breaker_records == 0)
		return FATE_OK;
	for (size_t p = 0; p < intake->parts_len; p++)
		for (size_t i = 0; i < len; i++)
			if (rows[i].partition == intake->parts[p].partition &&
			    view_equal_text(rows[i].topic, intake->parts[p].topic))
				restart = restart || wants_restart(intake, &intake->parts[p], &rows[i]);
	enum fate fate = intake_breaker_say(intake, error);
	if (fate == FATE_OK && restart)
		intake_restart_in(intake, 0);
	return fate;
}
