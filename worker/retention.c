#include "worker/retention.h"

#include "core/failpoint.h"
#include "core/log.h"
#include "core/metrics.h"

#include <inttypes.h>
#include <string.h>

#define ARENA          ((size_t)16 << 20)
#define ASK_TIMEOUT_MS 5000
#define DAY_US         INT64_C(86400000000)
#define MS_US          INT64_C(1000)
#define TURN_MS                                                                                              \
	100 /* of a sweep in one tick: expiry has its turn in between, and so have others at the disk */
#define LEASE_MS     30000
#define RENEW_MS     10000
#define REST         20 /* a sweep is followed by a rest of so many times what it took to look at what stays */
#define OFTEN        12     /* sweeps in the shortest of the times to keep, */
#define PAUSE_MIN_MS 5000   /* but not oftener than this */
#define PAUSE_MAX_MS 600000 /* and not more seldom than this */
#define SOON_MS      60000
#define DENIED_MS    3600000 /* what is not allowed, or cannot be understood, is tried again after so long */
#define PAGE_ROWS    1000
#define PAGE_BYTES   ((size_t)8 << 20)
#define PURGE_ROWS   500
#define WEEK_MS      INT64_C(604800000)

enum fate retention_init(struct retention *retention, struct worker *worker, struct store *store,
                         struct error *error)
{
	*retention = (struct retention){ .worker = worker, .store = store };
	retention->sweep = arena_new(ARENA);
	retention->page = arena_new(ARENA);
	if (retention->sweep == NULL || retention->page == NULL)
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the sweeps of what is settled");
	return FATE_OK;
}

void retention_done(struct retention *retention)
{
	arena_free(retention->sweep);
	arena_free(retention->page);
}

static int64_t keep_ms(const struct retention *retention, enum param param)
{
	return config_number(retention->worker->config, param);
}

/* What was settled before this is due, by the time that its sealed state, or its row, is kept. */
static int64_t settled_before(const struct retention *retention, bool rows)
{
	int64_t keep = keep_ms(retention, PARAM_RETENTION_PAYLOAD);
	if (rows && keep_ms(retention, PARAM_RETENTION_ROWS) > keep)
		keep = keep_ms(retention, PARAM_RETENTION_ROWS);
	return retention->now - keep * MS_US;
}

/* How long to rest after a sweep. */
static int64_t pause_ms(const struct retention *retention)
{
	int64_t shortest = keep_ms(retention, PARAM_RETENTION_PAYLOAD);
	int64_t rows = keep_ms(retention, PARAM_RETENTION_ROWS);
	if (rows > 0 && rows < shortest)
		shortest = rows;
	int64_t pause = shortest / OFTEN;
	if (retention->unfinished && pause > SOON_MS)
		pause = SOON_MS;
	pause = pause < PAUSE_MIN_MS ? PAUSE_MIN_MS : pause > PAUSE_MAX_MS ? PAUSE_MAX_MS : pause;
	return pause > REST * retention->idle_us / MS_US ? pause : REST * retention->idle_us / MS_US;
}

/* ---- beginning and end of a sweep ---- */

static enum fate claim(struct retention *retention, bool *ret_ours, struct error *error)
{
	bool mine = retention->phase != RETENTION_IDLE;
	*ret_ours = true;
	if (mine && clock_mono_ms() < retention->claim_ms)
		return FATE_OK;
	retention->claim_ms = clock_mono_ms() + RENEW_MS;
	return store_sweep_claim(retention->store, LEASE_MS * MS_US, mine, ret_ours, error);
}

static enum fate begin(struct retention *retention, struct error *error)
{
	bool ours;
	retention->idle_us = 0;
	retention->next_ms = clock_mono_ms() + pause_ms(retention);
	enum fate fate = claim(retention, &ours, error);
	if (fate == FATE_OK && ours)
		fate = failpoint(FAILPOINT_RETENTION_CLAIMED, error);
	if (fate != FATE_OK || !ours)
		return fate;
	arena_reset(retention->sweep);
	retention->now = clock_real_us();
	retention->deleted = retention->moved = retention->dropped = retention->purged = retention->orphans = 0;
	retention->unfinished = false;
	retention->day = 0;
	retention->from = (struct uuid){ { 0 } };
	fate = store_payload_days_held(retention->store, settled_before(retention, false), retention->sweep,
	                               &retention->days, &retention->days_len, error);
	if (fate == FATE_OK)
		retention->phase = RETENTION_PAYLOADS;
	return fate;
}

static size_t done_so_far(const struct retention *retention)
{
	return retention->deleted + retention->moved + retention->dropped + retention->purged +
	       retention->orphans;
}

static enum fate end(struct retention *retention, struct error *error)
{
	bool ours;
	int64_t pause = pause_ms(retention);
	retention->phase = RETENTION_IDLE;
	retention->next_ms = clock_mono_ms() + pause;
	if (done_so_far(retention) > 0)
		log_info("retention",
		         "sealed states: %zu deleted, %zu days dropped, %zu moved to another day; rows: %zu purged, "
		         "and %zu decisions without one",
		         retention->deleted, retention->dropped, retention->moved, retention->purged,
		         retention->orphans);
	enum fate fate = failpoint(FAILPOINT_RETENTION_SWEPT, error);
	return fate == FATE_OK ? store_sweep_claim(retention->store, pause * MS_US, true, &ours, error) : fate;
}

/* ---- sealed states ---- */

/* A day goes as a whole a day after the last moment at which it could be due, so that what was settled within a day
 * or so need not be moved first. */
static bool goes_whole(const struct retention *retention, const struct payload_day *day)
{
	return day->own && day->day_us + 2 * DAY_US <= settled_before(retention, false);
}

/* Deleting one by one what goes with its day soon is worth it only where that would be late by the measure of
 * what is asked for. */
static bool goes_singly(const struct retention *retention, const struct payload_day *day)
{
	return !day->own || keep_ms(retention, PARAM_RETENTION_PAYLOAD) < WEEK_MS;
}

static enum fate drop_day(struct retention *retention, const struct payload_day *day, struct error *error)
{
	int64_t payloads;
	char when[40];
	clock_format(day->day_us, when, sizeof(when));
	enum fate fate = store_payload_day_drop(retention->store, day->day_us, settled_before(retention, false),
	                                        &payloads, error);
	retention->unfinished = retention->unfinished || payloads < 0;
	if (fate == FATE_RETRY && strcmp(error->native, "55P03") == 0) {
		log_info("retention", "the sealed states of %.10s are not dropped yet: somebody reads the table",
		         when);
		return FATE_OK;
	}
	if (fate != FATE_OK || payloads < 0)
		return fate;
	log_info("retention", "the sealed states of %.10s were dropped: %" PRId64, when, payloads);
	metrics_add(METRIC_DAYS_DROPPED, 1);
	metrics_add(METRIC_PAYLOADS_PURGED, payloads);
	retention->dropped++;
	return FATE_OK;
}

static void next_day(struct retention *retention)
{
	retention->day++;
	retention->from = (struct uuid){ { 0 } };
}

static enum fate sweep_day(struct retention *retention, const struct payload_day *day, struct error *error)
{
	bool whole = goes_whole(retention, day);
	struct payload_page page = {
		.day_us = day->day_us,
		.from = retention->from,
		.settled_before = settled_before(retention, false),
		.move = whole,
		.now = retention->now,
		.rows = PAGE_ROWS,
		.bytes = PAGE_BYTES,
	};
	struct payload_swept swept;
	enum fate fate = store_payload_sweep(retention->store, &page, retention->page, &swept, error);
	if (fate != FATE_OK)
		return fate;
	metrics_add(METRIC_PAYLOADS_PURGED, (int64_t)swept.deleted);
	metrics_add(METRIC_PAYLOADS_MOVED, (int64_t)swept.moved);
	retention->looked += swept.looked;
	retention->deleted += swept.deleted;
	retention->moved += swept.moved;
	retention->from = swept.next;
	if (!swept.end)
		return FATE_OK;
	next_day(retention);
	if (!whole)
		return FATE_OK;
	fate = failpoint(FAILPOINT_RETENTION_DAY_SWEPT, error);
	return fate == FATE_OK ? drop_day(retention, day, error) : fate;
}

/* ---- rows ---- */

/* The first offsets that Kafka still has, of one topic. */
static enum fate ask_lows(struct retention *retention, enum param topic, struct error *error)
{
	const char *name = config_text(retention->worker->config, topic);
	struct reader *ends = retention->worker->ends;
	int32_t count;
	enum fate fate = reader_partitions(ends, name, ASK_TIMEOUT_MS, &count, error);
	if (fate != FATE_OK)
		return fate;
	struct kafka_low *lows =
		arena_array(retention->sweep, retention->lows_len + (size_t)count, sizeof(*lows));
	if (lows == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for the beginnings of %s", name);
	if (retention->lows_len > 0)
		memcpy(lows, retention->lows, retention->lows_len * sizeof(*lows));
	retention->lows = lows;
	for (int32_t i = 0; i < count && fate == FATE_OK; i++) {
		struct kafka_low *low = &lows[retention->lows_len++];
		int64_t high;
		*low = (struct kafka_low){ .topic = name, .partition = i };
		fate = reader_range(ends, name, i, ASK_TIMEOUT_MS, &low->low, &high, error);
	}
	return fate;
}

static enum fate begin_rows(struct retention *retention, struct error *error)
{
	if (keep_ms(retention, PARAM_RETENTION_ROWS) == 0)
		return end(retention, error);
	retention->phase = RETENTION_ROWS;
	retention->from_at = INT64_MIN;
	retention->from_id = (struct uuid){ { 0 } };
	retention->lows_len = 0;
	enum fate fate = ask_lows(retention, PARAM_TOPICS_SUSPENDS, error);
	return fate == FATE_OK ? ask_lows(retention, PARAM_TOPICS_APPROVALS, error) : fate;
}

/* By the time of its record: first what is old enough; then what says that it comes from the future, where the topic takes the
 * time that agents give. */
static enum fate sweep_rows(struct retention *retention, struct error *error)
{
	bool ahead = retention->phase == RETENTION_ROWS_AHEAD;
	struct purge_page page = {
		.cluster_id = retention->worker->cluster_id,
		.lows = retention->lows,
		.lows_len = retention->lows_len,
		.settled_before = settled_before(retention, true),
		.from_at = retention->from_at,
		.from_id = retention->from_id,
		.until_at = ahead ? INT64_MAX : settled_before(retention, true),
		.rows = PURGE_ROWS,
		.now = retention->now,
	};
	struct purge_swept swept;
	enum fate fate = store_rows_purge(retention->store, &page, retention->page, &swept, error);
	if (fate != FATE_OK)
		return fate;
	if (swept.purged > 0)
		fate = failpoint(FAILPOINT_RETENTION_AFTER_ROWS, error);
	metrics_add(METRIC_ROWS_PURGED, (int64_t)swept.purged);
	retention->looked += swept.looked;
	retention->purged += swept.purged;
	if (fate != FATE_OK)
		return fate;
	retention->yields = swept.busy;
	if (swept.busy)
		return FATE_OK;
	retention->from_at = swept.next_at;
	retention->from_id = swept.next_id;
	if (!swept.end)
		return FATE_OK;
	retention->phase = ahead ? RETENTION_ORPHANS : RETENTION_ROWS_AHEAD;
	retention->from_at = retention->now + DAY_US;
	retention->from_id = (struct uuid){ { 0 } };
	return FATE_OK;
}

/* Decisions whose suspend never came, and that were refused for it. */
static enum fate sweep_orphans(struct retention *retention, struct error *error)
{
	struct purge_page page = {
		.cluster_id = retention->worker->cluster_id,
		.lows = retention->lows,
		.lows_len = retention->lows_len,
		.settled_before = settled_before(retention, true),
		.from_id = retention->from_id,
		.rows = PURGE_ROWS,
		.now = retention->now,
	};
	struct purge_swept swept;
	enum fate fate = store_orphans_purge(retention->store, &page, retention->page, &swept, error);
	if (fate == FATE_OK && swept.purged > 0)
		fate = failpoint(FAILPOINT_RETENTION_AFTER_ORPHANS, error);
	if (fate != FATE_OK)
		return fate;
	metrics_add(METRIC_ORPHANS_PURGED, (int64_t)swept.purged);
	retention->looked += swept.looked;
	retention->orphans += swept.purged;
	retention->from_id = swept.next_id;
	return swept.end ? end(retention, error) : FATE_OK;
}

/* ---- a tick ---- */

static enum fate step(struct retention *retention, struct error *error)
{
	bool ours;
	enum fate fate = claim(retention, &ours, error);
	if (fate != FATE_OK)
		return fate;
	arena_reset(retention->page);
	if (retention->phase == RETENTION_ORPHANS)
		return sweep_orphans(retention, error);
	if (retention->phase != RETENTION_PAYLOADS)
		return sweep_rows(retention, error);
	if (retention->day == retention->days_len)
		return begin_rows(retention, error);
	const struct payload_day *day = &retention->days[retention->day];
	if (goes_whole(retention, day) || goes_singly(retention, day))
		return sweep_day(retention, day, error);
	next_day(retention);
	return FATE_OK;
}

/* A step, and what share of its time went into what stays: that is rested for. What goes has to go, however much it is:
 * a rest for that would be for ever where more comes than goes. */
static enum fate timed_step(struct retention *retention, struct error *error)
{
	int64_t began_ms = clock_mono_ms();
	size_t before = done_so_far(retention);
	retention->looked = 0;
	enum fate fate = step(retention, error);
	int64_t took_us = (clock_mono_ms() - began_ms) * MS_US;
	size_t done = done_so_far(retention) - before;
	if (done == 0)
		retention->idle_us += took_us;
	else if (retention->looked > done)
		retention->idle_us += took_us * (int64_t)(retention->looked - done) / (int64_t)retention->looked;
	return fate;
}

/* A worker that may not do this does all the rest: it says so, and looks again much later. */
static enum fate give_up(struct retention *retention, enum fate fate, struct error *error)
{
	retention->phase = RETENTION_IDLE;
	retention->next_ms = clock_mono_ms() + LEASE_MS;
	if (fate == FATE_RETRY)
		return fate;
	if (fate == FATE_FATAL && strcmp(error->native, "42501") != 0)
		return fate;
	retention->next_ms = clock_mono_ms() + DENIED_MS;
	(void)error_wrap(error, "what is settled is not cleared away, for an hour");
	log_error(LOG_LEVEL_ERROR, "retention", error);
	return FATE_OK;
}

enum fate retention_tick(struct retention *retention, struct error *error)
{
	int64_t began_ms = clock_mono_ms();
	enum fate fate = FATE_OK;
	if (retention->phase == RETENTION_IDLE && began_ms < retention->next_ms)
		return FATE_OK;
	if (retention->phase == RETENTION_IDLE)
		fate = begin(retention, error);
	retention->yields = false;
	while (fate == FATE_OK && retention->phase != RETENTION_IDLE && !retention->yields &&
	       clock_mono_ms() - began_ms < TURN_MS && !worker_stopping(retention->worker))
		fate = timed_step(retention, error);
	return fate == FATE_OK ? FATE_OK : give_up(retention, fate, error);
}

bool retention_goes_on(const struct retention *retention)
{
	return retention->phase != RETENTION_IDLE && !retention->yields;
}
