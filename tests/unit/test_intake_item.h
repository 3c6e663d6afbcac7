/*
 * test_intake_item.h - an intake whose database and Kafka are played: rows of test_judge.h and positions that
 * move by compare-and-set within a transaction; partitions with a beginning and an end; records of two
 * characters. Each can be told to fail. Included once a program, for it defines what it plays.
 */
#ifndef FERMATA_TESTS_UNIT_TEST_INTAKE_ITEM_H
#define FERMATA_TESTS_UNIT_TEST_INTAKE_ITEM_H

#include "test_judge.h"
#include "test_learn_none.h"
#include "test_worker_parts.h"

#include "config/config.h"
#include "core/log.h"
#include "worker/deadletter.h"
#include "worker/intake.h"

#include <stdio.h>

#define SUSPENDS  "fermata.suspends"
#define APPROVALS "fermata.approvals"
#define PLACES    4
#define NOWHERE   (-1)

/* ---- the database, played: rows of test_judge.h, and positions ---- */

static struct {
	struct world *world;
	struct position rows[PLACES];
	size_t rows_len;
	struct position staged[PLACES];
	size_t staged_len;
	struct batch_write write;
	bool has_write;
	int poison;              /* the checkpoint that the database refuses; 0: none */
	bool sick;               /* it refuses everything */
	int overtaken;           /* so many writes find that another worker was first */
	bool lose;               /* the next commit is lost */
	bool lose_word;          /* the next commit is done, and its answer is lost */
	void (*at_commit)(void); /* called before each; may be NULL */
	int commits;
	uint64_t connections; /* how many were made */
} db;

/* ---- Kafka, played ---- */

static struct {
	int64_t low[2][2]; /* [suspends, approvals][partition] */
	int64_t end[2][2];
	struct partition_at given[PLACES];
	size_t given_len;
	struct partition_at fetched[PLACES];
	size_t fetched_len;
	int starts;
	bool away;
	int64_t letters[64]; /* offsets of what left as a dead letter */
	enum error_code codes[64];
	size_t letters_len;
	bool letters_away;
	int closed; /* producers of letters that were given up */
	int wakes;
	const char *paused; /* the topic of the last one that was paused or resumed */
	bool pauses;
	int reports; /* of positions, for dashboards */
} kafka;

static inline int topic_index(const char *topic)
{
	return strcmp(topic, SUSPENDS) == 0 ? 0 : 1;
}

static inline struct position *find_place(struct position *rows, size_t len, const char *topic,
                                          int32_t partition)
{
	for (size_t i = 0; i < len; i++)
		if (rows[i].partition == partition && view_equal_text(rows[i].topic, topic))
			return &rows[i];
	return NULL;
}

static inline struct position *place_of(const char *topic, int32_t partition)
{
	return find_place(db.rows, db.rows_len, topic, partition);
}

static inline int64_t next_of(const char *topic, int32_t partition)
{
	const struct position *row = place_of(topic, partition);

	return row == NULL ? NOWHERE : row->next;
}

static inline void set_place(const char *topic, int32_t partition, int64_t next)
{
	struct position *row = place_of(topic, partition);

	if (row == NULL)
		row = &db.rows[db.rows_len++];
	assert_true(db.rows_len <= PLACES);
	*row = (struct position){ .topic = view_of(topic), .partition = partition, .next = next };
}

static inline bool stage_move(const struct move *move)
{
	struct position *row = find_place(db.staged, db.staged_len, move->topic, move->partition);

	if (move->lo == POSITION_NEW ? row != NULL : row == NULL || row->next != move->lo)
		return false;
	if (row == NULL) {
		assert_true(db.staged_len < PLACES);
		row = &db.staged[db.staged_len++];
		*row = (struct position){ .topic = view_of(move->topic), .partition = move->partition };
	}
	assert_true(move->hi > move->lo);
	row->next = move->hi;
	if (move->has_last) {
		row->has_last = true;
		row->last_offset = move->last_offset;
		row->last_timestamp = move->last_timestamp;
		memcpy(row->last_digest, move->last_digest, DIGEST_LEN);
	}
	return true;
}

enum fate store_batch_begin(struct store *store, const struct batch_request *request, struct arena *arena,
                            struct batch_loaded *ret_loaded, struct error *error)
{
	(void)store;
	(void)arena;
	(void)error;
	memcpy(db.staged, db.rows, sizeof(db.rows));
	db.staged_len = db.rows_len;
	db.has_write = false;
	*ret_loaded = (struct batch_loaded){ 0 };
	for (size_t i = 0; i < request->moves_len; i++)
		ret_loaded->stale = ret_loaded->stale || !stage_move(&request->moves[i]);
	if (ret_loaded->stale)
		return FATE_OK;
	ret_loaded->positions = db.staged;
	ret_loaded->positions_len = db.staged_len;
	arena_reset(db.world->batch);
	load_rows(db.world, request, ret_loaded);
	load_decisions(db.world, request, ret_loaded);
	return FATE_OK;
}

enum fate store_batch_write(struct store *store, const struct batch_write *write, struct error *error)
{
	struct uuid poison = id_of('c', db.poison);

	(void)store;
	for (size_t i = 0; i < write->checkpoints_len; i++)
		if (uuid_compare(&write->checkpoints[i].checkpoint->id, &poison) == 0)
			return error_set_native(error, FATE_REJECT, ERR_POISON, "22P05", "a value was refused");
	if (db.overtaken > 0) {
		db.overtaken--;
		return error_set(error, FATE_RETRY, ERR_STALE, "another worker was first");
	}
	db.write = *write;
	db.has_write = true;
	return FATE_OK;
}

enum fate store_commit(struct store *store, struct error *error)
{
	(void)store;
	if (db.at_commit != NULL)
		db.at_commit();
	if (db.sick)
		return error_set(error, FATE_REJECT, ERR_POISON, "refused");
	if (db.lose) {
		db.lose = false;
		return error_set(error, FATE_RETRY, ERR_SERVICE, "the connection was lost");
	}
	if (db.has_write)
		world_write(db.world, &db.write);
	memcpy(db.rows, db.staged, sizeof(db.rows));
	db.rows_len = db.staged_len;
	db.commits++;
	if (!db.lose_word)
		return FATE_OK;
	db.lose_word = false;
	return error_set(error, FATE_RETRY, ERR_SERVICE, "the connection was lost");
}

void store_rollback(struct store *store)
{
	(void)store;
	db.has_write = false;
}

enum fate store_connect(struct store *store, struct error *error)
{
	(void)store;
	(void)error;
	return FATE_OK;
}

uint64_t store_reconnects(const struct store *store)
{
	(void)store;
	return db.connections;
}

enum fate store_positions(struct store *store, const char *cluster_id, struct arena *arena,
                          struct position **ret_positions, size_t *ret_len, struct error *error)
{
	(void)store;
	(void)error;
	assert_string_equal(cluster_id, "cluster");
	*ret_positions = arena_array(arena, PLACES, sizeof(**ret_positions));
	assert_non_null(*ret_positions);
	memcpy(*ret_positions, db.rows, sizeof(db.rows));
	*ret_len = db.rows_len;
	return FATE_OK;
}

enum fate store_position_waits(struct store *store, const char *cluster_id, const char *topic,
                               int32_t partition, enum position_waits waits, struct error *error)
{
	struct position *row = place_of(topic, partition);

	(void)store;
	(void)cluster_id;
	if (row == NULL)
		return error_set(error, FATE_RETRY, ERR_STALE, "no position yet");
	row->waits = waits;
	return FATE_OK;
}

enum fate reader_start(struct reader *reader, const struct partition_at *parts, size_t len,
                       struct error *error)
{
	(void)reader;
	(void)error;
	kafka.starts++;
	kafka.fetched_len = len;
	for (size_t i = 0; i < len; i++)
		kafka.fetched[i] = parts[i];
	return FATE_OK;
}

enum fate reader_pause(struct reader *reader, const char *topic, int32_t partition, struct error *error)
{
	(void)reader;
	(void)partition;
	(void)error;
	kafka.paused = topic;
	kafka.pauses = true;
	return FATE_OK;
}

enum fate reader_resume(struct reader *reader, const char *topic, int32_t partition, struct error *error)
{
	(void)reader;
	(void)partition;
	(void)error;
	kafka.paused = topic;
	kafka.pauses = false;
	return FATE_OK;
}

enum fate reader_range(struct reader *reader, const char *topic, int32_t partition, int timeout_ms,
                       int64_t *ret_low, int64_t *ret_end, struct error *error)
{
	(void)reader;
	(void)timeout_ms;
	if (kafka.away)
		return error_set(error, FATE_RETRY, ERR_SERVICE, "could not ask Kafka");
	*ret_low = kafka.low[topic_index(topic)][partition];
	*ret_end = kafka.end[topic_index(topic)][partition];
	return FATE_OK;
}

enum fate reader_partitions(struct reader *reader, const char *topic, int timeout_ms, int32_t *ret_count,
                            struct error *error)
{
	(void)reader;
	(void)topic;
	(void)timeout_ms;
	if (kafka.away)
		return error_set(error, FATE_RETRY, ERR_SERVICE, "could not ask Kafka");
	*ret_count = 2;
	return FATE_OK;
}

const struct partition_at *reader_assignment(const struct reader *reader, size_t *ret_len)
{
	(void)reader;
	*ret_len = kafka.given_len;
	return kafka.given;
}

void reader_report_positions(struct reader *reader, const struct partition_at *parts, size_t len)
{
	(void)reader;
	for (size_t i = 0; i < len; i++)
		assert_int_equal(parts[i].offset, next_of(parts[i].topic, parts[i].partition));
	kafka.reports += (int)len;
}

void reader_stop_waiting(struct reader *reader)
{
	(void)reader;
}

void record_done(struct record *record)
{
	free(record->message);
	record->message = NULL;
	record->value = VIEW_NULL; /* whoever looks at it now finds nothing */
}

void producer_close(struct producer *producer)
{
	(void)producer;
	kafka.closed++;
}

enum fate deadletter_send(struct producer *producer, const char *topic, struct item **items, size_t len,
                          struct arena *arena, struct error *error)
{
	(void)producer;
	(void)arena;
	assert_string_equal(topic, "fermata.dead-letters");
	if (kafka.letters_away)
		return error_set(error, FATE_RETRY, ERR_SERVICE, "not acknowledged");
	for (size_t i = 0; i < len; i++)
		if (items[i]->dead) {
			assert_true(kafka.letters_len < 64 && !view_is_null(items[i]->record.value));
			kafka.codes[kafka.letters_len] = items[i]->why.code;
			kafka.letters[kafka.letters_len++] = items[i]->record.at.offset;
		}
	return FATE_OK;
}

/* ---- the rest of the worker ---- */

uint64_t shards_elsewhere(struct worker *worker, const struct batch_write *batch)
{
	(void)worker;
	return batch->notify;
}

uint64_t store_shard_bit(struct view topic, int32_t partition)
{
	(void)topic;
	return UINT64_C(1) << (partition & 63);
}

void shards_hand_over(struct worker *worker, const struct checkpoint *row, const struct tray_event *event)
{
	(void)worker;
	(void)row;
	(void)event;
}

void shards_forget(struct worker *worker)
{
	(void)worker;
}

void shards_wake(struct worker *worker, const struct batch_write *batch)
{
	(void)batch;
	(void)worker;
	kafka.wakes++;
}

/* A value of two characters: s1 is the suspend event of 1, a1 an approval of it, x cannot be understood, m
 * does not fit beside anything else, M does not fit at all, u3 is in a schema that comes with the third news. */
enum fate intake_understand(struct intake *intake, struct item *item, struct error *error)
{
	const char *value = (const char *)item->record.value.data;
	int number = value[1] - '0';
	struct item *made = NULL;

	if (value[0] == 'x') {
		item->dead = true;
		(void)error_set(&item->why, FATE_REJECT, ERR_MALFORMED, "no");
		return FATE_OK;
	}
	if (value[0] == 'u' && news < (uint64_t)number)
		return error_set(error, FATE_RETRY, ERR_UNKNOWN_SCHEMA, "the registry is asked");
	if (value[0] == 'M' || (value[0] == 'm' && intake->items_len > 0))
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a record");
	if (item->suspend)
		made = suspend_item(db.world, number, (struct suspend_args){ .seq = number });
	else
		made = decision_item(db.world, (int)item->record.at.offset, number,
		                     (struct decision_args){ .who = "ann" });
	item->fresh = made->fresh;
	item->decision = made->decision;
	return FATE_OK;
}

/* ---- a stage ---- */

struct room {
	struct worker worker;
	struct intake intake;
	struct config *config;
};

static inline void give(const char *topic, int32_t partition)
{
	kafka.given[kafka.given_len++] = (struct partition_at){ topic, partition, READER_BEGINNING };
}

static inline int setup(void **state)
{
	struct room *room = calloc(1, sizeof(*room));
	struct config_request request = { 0 };
	struct error error;

	assert_non_null(room);
	memset(&db, 0, sizeof(db));
	memset(&kafka, 0, sizeof(kafka));
	news = 0;
	log_setup(LOG_LEVEL_ERROR, LOG_FORMAT_TEXT);
	db.world = world_new();
	assert_int_equal(config_load(&room->config, &request, &error), FATE_OK);
	room->worker.config = room->config;
	snprintf(room->worker.cluster_id, sizeof(room->worker.cluster_id), "cluster");
	struct intake *intake = &room->intake;
	intake->worker = &room->worker;
	intake->suspends_topic = SUSPENDS;
	intake->approvals_topic = APPROVALS;
	intake->letters = (struct producer *)room; /* never looked at */
	intake->items_cap = 16;
	intake->items = calloc(intake->items_cap, sizeof(*intake->items));
	intake->order = calloc(intake->items_cap, sizeof(*intake->order));
	intake->arena = arena_new(1 << 20);
	assert_non_null(intake->arena);
	intake->work = arena_new(1 << 24);
	assert_non_null(intake->work);
	intake->positions = arena_new(1 << 20);
	assert_non_null(intake->positions);
	intake->arena_cap = 1 << 20;
	intake->judge = db.world->settings;
	backoff_init(&intake->backoff, 1, 2);
	give(SUSPENDS, 0);
	give(SUSPENDS, 1);
	give(APPROVALS, 0);
	*state = room;
	return 0;
}

static inline int teardown(void **state)
{
	struct room *room = *state;
	struct intake *intake = &room->intake;

	intake_revoked(intake);
	arena_free(intake->arena);
	arena_free(intake->work);
	arena_free(intake->positions);
	free(intake->items);
	free(intake->outcomes);
	free(intake->order);
	free(intake->parts);
	free(intake->reports);
	free(intake->targets);
	free(intake->seen);
	config_free(room->config);
	world_free(db.world);
	free(room);
	return 0;
}

static inline void restart(struct intake *intake)
{
	struct error error;

	if (intake_restart(intake, &error) != FATE_OK)
		assert_int_equal(intake_restart(intake, &error), FATE_OK); /* ends are asked for anew */
}

/* Assigned and reading; approvals too when there is no suspend to be read before. */
static inline struct intake *begin(void **state)
{
	struct room *room = *state;
	struct error error;

	assert_int_equal(intake_assigned(&room->intake, &error), FATE_OK);
	restart(&room->intake);
	return &room->intake;
}

static inline enum fate add(struct intake *intake, const char *topic, int32_t partition, int64_t offset,
                            const char *value)
{
	struct part *part = intake_part(intake, topic, partition);
	struct error error;
	char *message = strdup(value);
	struct record record = { .at = { topic, partition, offset, T0 },
		                     .value = view_of(message),
		                     .message = message };

	assert_non_null(part);
	return intake_add(intake, part, &record, &error);
}

static inline void feed(struct intake *intake, int32_t partition, int64_t offset, const char *value)
{
	assert_int_equal(add(intake, SUSPENDS, partition, offset, value), FATE_OK);
}

static inline enum fate run(struct intake *intake, struct error *error)
{
	return intake_run_batch(intake, error);
}

static inline void run_well(struct intake *intake)
{
	struct error error;

	assert_int_equal(run(intake, &error), FATE_OK);
	assert_int_equal(intake->items_len, 0);
	assert_false(intake->moved);
}

static inline const struct partition_at *fetched(const char *topic, int32_t partition)
{
	for (size_t i = 0; i < kafka.fetched_len; i++)
		if (kafka.fetched[i].partition == partition && strcmp(kafka.fetched[i].topic, topic) == 0)
			return &kafka.fetched[i];
	return NULL;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

#endif
