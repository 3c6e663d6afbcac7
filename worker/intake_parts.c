#include "worker/intake.h"
#include "worker/learn.h"

#include "core/failpoint.h"
#include "core/log.h"
#include "core/metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASK_TIMEOUT_MS  5000 /* for one question to the broker */
#define LOOK_MS         5000 /* protocol.md: every 5 s */
#define LOOK_WAITING_MS 100
#define PARKED_MS       1000
#define PARKED_TRY_MS                                                                                        \
	10000 /* without news: what a registry did not have is there some time, and nobody says so */

struct part *intake_part(struct intake *intake, const char *topic, int32_t partition)
{
	for (size_t i = 0; i < intake->parts_len; i++)
		if (intake->parts[i].partition == partition && strcmp(intake->parts[i].topic, topic) == 0)
			return &intake->parts[i];
	return NULL;
}

/* ---- partitions that wait for a schema ---- */

static void let_go(struct part *part)
{
	if (part->parked)
		record_done(&part->held);
	part->parked = part->waits = false;
}

static void let_all_go(struct intake *intake)
{
	for (size_t i = 0; i < intake->parts_len; i++)
		let_go(&intake->parts[i]);
}

enum fate intake_park(struct intake *intake, struct part *part, struct record *record, struct error *error)
{
	part->parked = true;
	part->held = *record;
	part->news = learn_count(intake->worker);
	part->parked_ms = part->tried_ms = clock_mono_ms();
	if (part->received < 0) { /* so that there is a row that can say that it waits */
		part->received = record->at.offset;
		intake->moved = true;
	}
	return reader_pause(intake->reader, part->topic, part->partition, error);
}

/* So long nobody else is told: most registries answer sooner. */
static enum fate say_waits(struct intake *intake, struct part *part, struct error *error)
{
	if (part->waits || part->durable == POSITION_NEW || clock_mono_ms() - part->parked_ms < PARKED_MS)
		return FATE_OK;
	log_warn("intake", "%s [%" PRId32 "] waits at offset %" PRId64 " for %s; the others go on", part->topic,
	         part->partition, part->held.at.offset,
	         atomic_load(&intake->worker->broken_schemas) > 0
	             ? "a schema that may be in a file of schemas.path that cannot be used"
	             : "the schema registry");
	part->waits = true;
	return store_position_waits(intake->store, intake->worker->cluster_id, part->topic, part->partition,
	                            WAITS_REGISTRY, error);
}

static enum fate go_on(struct intake *intake, struct part *part, struct error *error)
{
	struct record record = part->held;
	bool waited = part->waits;
	part->parked = part->waits = false;
	enum fate fate = intake->items_len == intake->items_cap ? intake_run_batch(intake, error) : FATE_OK;
	if (fate != FATE_OK) {
		record_done(&record);
		return fate;
	}
	fate = intake_add(intake, part, &record, error);
	if (fate != FATE_OK || part->parked) {
		part->waits = waited;
		return fate;
	}
	if (waited)
		fate = store_position_waits(intake->store, intake->worker->cluster_id, part->topic, part->partition,
		                            WAITS_NO, error);
	return fate == FATE_OK ? reader_resume(intake->reader, part->topic, part->partition, error) : fate;
}

static bool is_to_be_tried(const struct intake *intake, const struct part *part)
{
	return learn_count(intake->worker) != part->news || clock_mono_ms() - part->tried_ms >= PARKED_TRY_MS;
}

enum fate intake_look_at_parked(struct intake *intake, struct error *error)
{
	enum fate fate = FATE_OK;
	for (size_t i = 0; i < intake->parts_len && fate == FATE_OK && intake->running; i++) {
		struct part *part = &intake->parts[i];
		if (part->parked)
			fate = is_to_be_tried(intake, part) ? go_on(intake, part, error) : say_waits(intake, part, error);
	}
	return fate;
}

/* ---- partitions that are left alone ---- */

static void count_alarmed(struct intake *intake)
{
	int alarmed = 0;
	for (size_t i = 0; i < intake->parts_len; i++)
		alarmed += intake->parts[i].alarmed ? 1 : 0;
	atomic_store(&intake->worker->alarmed_parts, alarmed);
	metrics_set(METRIC_ALARMED, alarmed);
}

enum fate intake_alarm(struct intake *intake, struct part *part, const char *why, struct error *error)
{
	log_write(LOG_LEVEL_ERROR, "intake",
	          "ALARM %s [%" PRId32
	          "]: %s; it is left alone, the others go on: stop all workers, and run `fermata "
	          "rebuild` or set its position (docs/recovery.md, \"A partition is left alone\")",
	          part->topic, part->partition, why);
	enum fate fate = intake_settle(intake, error);
	if (fate != FATE_OK)
		return fate;
	part->alarmed = true;
	count_alarmed(intake);
	return store_position_waits(intake->store, intake->worker->cluster_id, part->topic, part->partition,
	                            WAITS_ALARM, error);
}

enum fate intake_alarm_gone(struct intake *intake, struct part *part, int64_t low, struct error *error)
{
	char why[256];
	snprintf(why, sizeof(why),
	         "the %s from offset %" PRId64 " to %" PRId64
	         " are gone, and were never taken in: retention was shorter than the wait",
	         part->suspends ? "suspends" : "decisions", part->durable, low - 1);
	return intake_alarm(intake, part, why, error);
}

/* ---- the assignment ---- */

enum fate intake_given(struct intake *intake, const struct partition_at *given, size_t len,
                       struct error *error)
{
	struct part *parts = calloc(len + 1, sizeof(*parts));
	struct partition_at *reports = calloc(len + 1, sizeof(*reports));
	if (parts == NULL || reports == NULL) {
		free(parts);
		free(reports);
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for an assignment");
	}
	intake_wait(intake);
	intake_drop_batch(intake);
	let_all_go(intake);
	free(intake->parts);
	free(intake->reports);
	intake->parts = parts;
	intake->reports = reports;
	intake->parts_len = len;
	for (size_t i = 0; i < len; i++) {
		bool suspends = strcmp(given[i].topic, intake->suspends_topic) == 0;
		parts[i] = (struct part){
			.topic = suspends ? intake->suspends_topic : intake->approvals_topic,
			.suspends = suspends,
			.partition = given[i].partition,
			.durable = POSITION_NEW,
			.received = POSITION_NEW,
			.handed = POSITION_NEW,
			.told = POSITION_NEW,
		};
	}
	intake_restart_in(intake, 0);
	count_alarmed(intake);
	return intake_breakers_new(intake, error);
}

enum fate intake_assigned(struct intake *intake, struct error *error)
{
	size_t len;
	const struct partition_at *given = reader_assignment(intake->reader, &len);
	enum fate fate = intake_given(intake, given, len, error);
	if (fate != FATE_OK)
		return fate;
	log_info("intake", "the group gave this worker %zu partitions", len);
	if (len == 0) /* more workers than partitions: there is nothing to wait for */
		atomic_store(&intake->worker->caught_up, true);
	return FATE_OK;
}

void intake_revoked(struct intake *intake)
{
	intake_wait(intake);
	shards_forget(intake->worker);
	intake_drop_batch(intake);
	let_all_go(intake);
	intake->parts_len = 0;
	intake->running = false;
	count_alarmed(intake);
}

void intake_restart_in(struct intake *intake, int64_t wait_ms)
{
	struct error error;
	intake_wait(intake);
	shards_forget(intake->worker);
	intake_drop_batch(intake);
	let_all_go(intake);
	if (intake->running && reader_start(intake->reader, NULL, 0, &error) != FATE_OK)
		log_error(LOG_LEVEL_WARN, "intake", &error);
	intake->running = false;
	intake->restart_at_ms = clock_mono_ms() + wait_ms;
}

/* ---- the ends that approvals wait for ---- */

static enum fate grow_seen(struct intake *intake, int32_t count, struct error *error)
{
	if (count <= intake->targets_len)
		return FATE_OK;
	int64_t *seen = realloc(intake->seen, (size_t)count * sizeof(*seen));
	if (seen != NULL)
		intake->seen = seen;
	int64_t *targets = realloc(intake->targets, (size_t)count * sizeof(*targets));
	if (targets != NULL)
		intake->targets = targets;
	if (seen == NULL || targets == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for %" PRId32 " partitions", count);
	for (int32_t i = intake->targets_len; i < count; i++)
		seen[i] = targets[i] = 0;
	intake->targets_len = count;
	return FATE_OK;
}

/* Asks for the end of every suspends partition, as it stands now, with this worker's own committed eyes. */
static enum fate ask_targets(struct intake *intake, struct error *error)
{
	int32_t count;
	enum fate fate = reader_partitions(intake->reader, intake->suspends_topic, ASK_TIMEOUT_MS, &count, error);
	if (fate == FATE_OK)
		fate = grow_seen(intake, count, error);
	for (int32_t i = 0; fate == FATE_OK && i < count; i++) {
		int64_t low, end;
		fate = reader_range(intake->reader, intake->suspends_topic, i, ASK_TIMEOUT_MS, &low, &end, error);
		if (fate == FATE_OK)
			intake->targets[i] = end;
	}
	intake->targets_known = fate == FATE_OK;
	return fate;
}

static const struct position *find_row(const struct position *rows, size_t len, const char *topic,
                                       int32_t partition)
{
	for (size_t i = 0; i < len; i++)
		if (rows[i].partition == partition && view_equal_text(rows[i].topic, topic))
			return &rows[i];
	return NULL;
}

static bool targets_reached(const struct intake *intake, const struct position *rows, size_t len)
{
	for (int32_t i = 0; i < intake->targets_len; i++) {
		const struct position *row = find_row(rows, len, intake->suspends_topic, i);
		if (row != NULL && row->waits != WAITS_NO)
			continue;
		if (row == NULL || row->next < intake->targets[i])
			return false;
	}
	return true;
}

static void close_approvals(struct intake *intake)
{
	intake->approvals_open = false;
	intake->targets_known = false;
	atomic_store(&intake->worker->caught_up, false);
}

/* ---- rows against beliefs ---- */

static const struct move *find_move(const struct move *moves, size_t len, const char *topic,
                                    int32_t partition)
{
	for (size_t i = 0; i < len; i++)
		if (moves[i].partition == partition && strcmp(moves[i].topic, topic) == 0)
			return &moves[i];
	return NULL;
}

static bool own_rows_hold(const struct intake *intake, const struct position *rows, size_t len,
                          const struct move *moves, size_t moves_len)
{
	for (size_t p = 0; p < intake->parts_len; p++) {
		const struct part *part = &intake->parts[p];
		const struct position *row = find_row(rows, len, part->topic, part->partition);
		const struct move *move = find_move(moves, moves_len, part->topic, part->partition);
		int64_t expected = move == NULL ? part->durable : move->hi;
		if (!part->alarmed && (row == NULL ? POSITION_NEW : row->next) != expected)
			return false;
	}
	return true;
}

/* Remembers how far each suspends partition was seen; false when one went back. What a batch has only just
 * moved is not remembered: its transaction may yet be rolled back, and its commit notes it. */
static bool suspends_hold(struct intake *intake, const struct position *rows, size_t len,
                          const struct move *moves, size_t moves_len)
{
	bool hold = true;
	for (int32_t i = 0; i < intake->targets_len; i++) {
		const struct position *row = find_row(rows, len, intake->suspends_topic, i);
		int64_t next = row == NULL ? 0 : row->next;
		if (find_move(moves, moves_len, intake->suspends_topic, i) != NULL)
			continue;
		if (next < intake->seen[i])
			hold = false;
		intake->seen[i] = next;
	}
	return hold;
}

bool intake_positions_hold(struct intake *intake, const struct position *rows, size_t len,
                           const struct move *moves, size_t moves_len)
{
	bool own = own_rows_hold(intake, rows, len, moves, moves_len);
	bool suspends = suspends_hold(intake, rows, len, moves, moves_len);
	if (!suspends) {
		log_warn("intake",
		         "positions of suspends in the database went back (a restore?): approvals wait until "
		         "the suspends have been read again");
		close_approvals(intake);
	}
	return own && suspends;
}

enum fate intake_look(struct intake *intake, struct error *error)
{
	struct position *rows;
	size_t len;
	intake->look_at_ms = clock_mono_ms() + (intake->approvals_open ? LOOK_MS : LOOK_WAITING_MS);
	arena_reset(intake->positions);
	enum fate fate =
		store_positions(intake->store, intake->worker->cluster_id, intake->positions, &rows, &len, error);
	if (fate != FATE_OK)
		return fate;
	if (!intake_positions_hold(intake, rows, len, NULL, 0)) {
		intake_restart_in(intake, 0);
		return FATE_OK;
	}
	if (!intake->approvals_open && intake->targets_known && targets_reached(intake, rows, len)) {
		log_info("intake", "every suspend that stood at the start is in: approvals are judged from here on");
		intake->approvals_open = true;
		atomic_store(&intake->worker->caught_up, true);
		intake_restart_in(intake, 0);
		return FATE_OK;
	}
	return intake_breaker_look(intake, rows, len, error);
}

/* ---- restart: positions from PostgreSQL, fetching from there ---- */

/* Is the place that the row names still there? Sets where to fetch from, or raises the alarm. */
static enum fate check_place(struct intake *intake, struct part *part, int64_t *ret_offset, bool *ret_at_end,
                             struct error *error)
{
	int64_t low, end;
	enum fate fate =
		reader_range(intake->reader, part->topic, part->partition, ASK_TIMEOUT_MS, &low, &end, error);
	if (fate != FATE_OK)
		return fate;
	*ret_offset = part->durable;
	*ret_at_end = part->durable >= end;
	if (part->durable > end)
		return intake_alarm(intake, part,
		                    "the position in the database is past the end of the partition: the topic was "
		                    "made anew, or this is another cluster",
		                    error);
	if (part->durable < low)
		return intake_alarm_gone(intake, part, low, error);
	part->verify =
		part->last.has_last && part->last.last_offset >= low && part->last.last_offset < part->durable;
	if (part->verify)
		*ret_offset = part->last.last_offset;
	return FATE_OK;
}

/* Sets where to fetch from, and whether to. */
static enum fate place_part(struct intake *intake, struct part *part, const struct position *row,
                            int64_t *ret_offset, bool *ret_fetch, struct error *error)
{
	bool at_end = false;
	let_go(part);
	part->durable = part->received = part->handed = part->told = row == NULL ? POSITION_NEW : row->next;
	part->verify = false;
	part->alarmed = false;
	part->last = row == NULL ? (struct position){ 0 } : *row;
	*ret_offset = READER_BEGINNING;
	enum fate fate = row == NULL ? FATE_OK : check_place(intake, part, ret_offset, &at_end, error);
	if (fate != FATE_OK)
		return fate;
	*ret_fetch = intake_breaker_place(intake, part, row, at_end) && !part->alarmed;
	if (row != NULL && !part->alarmed && !part->stopped && row->waits != WAITS_NO)
		fate = store_position_waits(intake->store, intake->worker->cluster_id, part->topic, part->partition,
		                            WAITS_NO, error);
	return fate;
}

static enum fate start_reading(struct intake *intake, const struct position *rows, size_t len,
                               struct error *error)
{
	struct partition_at *places = arena_array(intake->positions, intake->parts_len, sizeof(*places));
	if (places == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for positions");
	size_t places_len = 0;
	for (size_t i = 0; i < intake->parts_len; i++) {
		struct part *part = &intake->parts[i];
		int64_t offset;
		bool fetch;
		enum fate fate = place_part(intake, part, find_row(rows, len, part->topic, part->partition), &offset,
		                            &fetch, error);
		if (fate != FATE_OK)
			return fate;
		if (fetch && (part->suspends || intake->approvals_open))
			places[places_len++] = (struct partition_at){ part->topic, part->partition, offset };
	}
	count_alarmed(intake);
	return reader_start(intake->reader, places, places_len, error);
}

/* A new connection may be one to a server that has lost its last transactions (a failover): what a suspend on
 * another partition withdrew may not be withdrawn there any more. Approvals wait as after a start. */
static enum fate look_at_connection(struct intake *intake, struct error *error)
{
	enum fate fate = store_connect(intake->store, error);
	if (fate != FATE_OK || store_reconnects(intake->store) == intake->connection)
		return fate;
	intake->connection = store_reconnects(intake->store);
	close_approvals(intake);
	return FATE_OK;
}

enum fate intake_restart(struct intake *intake, struct error *error)
{
	intake_wait(intake);
	intake_drop_batch(intake);
	enum fate connected = failpoint(FAILPOINT_INTAKE_RESTART, error);
	if (connected == FATE_OK)
		connected = look_at_connection(intake, error);
	if (connected != FATE_OK)
		return connected;
	if (!intake->targets_known) {
		enum fate fate = ask_targets(intake, error);
		if (fate != FATE_OK)
			return fate;
	}
	struct position *rows;
	size_t len;
	arena_reset(intake->positions);
	enum fate fate =
		store_positions(intake->store, intake->worker->cluster_id, intake->positions, &rows, &len, error);
	if (fate != FATE_OK)
		return fate;
	if (!suspends_hold(intake, rows, len, NULL,
	                   0)) { /* also before they were open: another worker's may have been */
		close_approvals(intake);
		return error_set(error, FATE_RETRY, ERR_STALE, "positions of suspends in the database went back");
	}
	fate = start_reading(intake, rows, len, error);
	if (fate == FATE_OK)
		fate = intake_breaker_say(intake, error);
	if (fate != FATE_OK)
		return fate;
	intake->running = true;
	worker_part_ok(intake->worker, PART_INTAKE_POSTGRES, true);
	intake->look_at_ms = clock_mono_ms() + (intake->approvals_open ? LOOK_MS : LOOK_WAITING_MS);
	return FATE_OK;
}
