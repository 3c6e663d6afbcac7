/*
 * test_relay.h - one shard, its broker and its database, played: a log whose transactions are open,
 * committed or aborted, an id that is fenced by epochs, rows and a ledger that move by compare-and-set, a
 * clock that goes as fast as it is waited for. Every call may fail before it does anything or after it has
 * done it, the power may go, the database may go back, and another relay may come in between.
 * Included once a program, for it defines what it plays.
 */
#ifndef FERMATA_TESTS_UNIT_TEST_RELAY_H
#define FERMATA_TESTS_UNIT_TEST_RELAY_H

#include "worker/relay.h"

#include "core/log.h"

// clang-format off
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
// clang-format on
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECKPOINTS 8
#define LOG_MAX     8192
#define SECOND      INT64_C(1000000)
#define LIVES_MAX   2

/* ---- what there is ---- */

enum mark { MARK_OPEN, MARK_COMMITTED, MARK_ABORTED, MARK_CONTROL };

struct log_record {
	enum mark mark;
	struct uuid id;
	int64_t at;
};

struct broker {
	struct log_record log[LOG_MAX];
	int64_t low;
	int64_t len;
	int epoch;  /* of the one transactional id */
	bool asked; /* a commit of the open transaction was asked for, and its answer was lost */
	int64_t gate_version[CHECKPOINTS]; /* the newest that was committed */
	int too_large;                     /* this checkpoint's resume is, by itself; -1: none */
	size_t request_records;            /* more resumes than this in one transaction are; 0: any number may */
};

struct producer {
	int epoch;
	producer_report *report;
	void *context;
	struct {
		void *tag;
		int64_t offset;
	} queue[4 * CHECKPOINTS];
	size_t queue_len;
	bool refused; /* it was fenced: what it sends is nowhere */
};

struct base_row {
	bool decided; /* else pending; the states are those of the contract */
	enum gate_state state;
	bool outbox;
	int64_t seq;
	int64_t decided_at;
	int64_t doubt_settled;
	int64_t version;
	int64_t gate; /* version in gate_outbox; 0: no row */
};

struct base {
	struct base_row rows[CHECKPOINTS];
	int64_t seq;
	bool has_ledger;
	int64_t next;
	struct doubt doubt;
	uint8_t routes_digest[32]; /* of the ledger's row */
};

struct reader {
	int64_t position;
	bool told_end;
};

/* The value of a gate event. */
struct told {
	struct uuid id;
	enum gate_state state;
	int64_t version;
};

struct life {
	struct relay *relay;
	bool off;  /* the power is gone: nothing that it does has an effect */
	int takes; /* R3s that are left to it */
	int waits;
	bool nothing;                  /* its last R3 found nothing */
	bool rested;                   /* since it opened something */
	struct told seen[CHECKPOINTS]; /* what its last R3 has read of gate events */
};

static struct {
	struct broker broker;
	struct base base;
	struct base kept; /* a backup */
	bool has_kept;
	bool rebuilt; /* the database was lost whole once */
	int64_t now_ms;
	int64_t
		decided_at[CHECKPOINTS]; /* LogAppendTime: the same whenever a decision is read again; 0: not yet */
	uint64_t random;
	int trouble;    /* percent of the calls that fail */
	bool intrusion; /* another relay may come in between */
	struct life lives[LIVES_MAX];
	int depth; /* lives that are running */
	uint64_t connects;
	int reconnect_at; /* with so many R3s left the connection is a new one; 0: never */
	int broken;       /* this checkpoint cannot be opened; -1: none */
	int waiting;      /* this one not now; -1: none */
	int marks;        /* R5s */
	int handed;       /* gate events that were published as intake had handed them over */
	int followed;     /* those that the relay had kept when it published the resume */
	int mixed;        /* transactions with resumes and gate events */
	int looks;        /* R3s that came right after an R5, without a wait in between */
	int rests;        /* R3s that came after one that found nothing */
	bool unread;      /* some other shard's ledger is */
	int told;         /* how often the gate events of what waits were queued */
	bool marked;      /* the last thing was an R5 */
	struct worker worker;
	struct config *config;
} play;

/* ---- chance ---- */

static inline int draw(int below)
{
	play.random ^= play.random >> 12;
	play.random ^= play.random << 25;
	play.random ^= play.random >> 27;
	return (int)((play.random * UINT64_C(2685821657736338717) >> 33) % (uint64_t)below);
}

static inline bool chance(int percent)
{
	return draw(100) < percent;
}

static inline struct life *life_now(void)
{
	assert_true(play.depth > 0);
	return &play.lives[play.depth - 1];
}

static inline enum fate trouble(struct error *error)
{
	return error_set(error, FATE_RETRY, ERR_SERVICE, "trouble");
}

static inline void run_life(int takes);

/* Before a call does anything: has it an effect at all? */
static inline bool strikes(void)
{
	struct life *life = life_now();

	if (life->off)
		return true;
	if (play.trouble == 0)
		return false;
	if (play.intrusion && play.depth < LIVES_MAX && chance(2))
		run_life(1 + draw(4));
	if (play.has_kept && chance(1)) { /* a restore that no connection notices */
		play.rebuilt = play.rebuilt || !play.kept.has_ledger;
		play.base = play.kept;
	}
	if (chance(4)) {
		play.kept = play.base;
		play.has_kept = true;
	}
	if (chance(2)) {
		life->off = true;
		atomic_store(&life->relay->ended, true);
		return true;
	}
	return chance(play.trouble);
}

/* After a call has done what it does: is its answer lost? */
static inline bool answer_lost(void)
{
	return play.trouble > 0 && chance(play.trouble);
}

static inline int number_of(const struct uuid *id)
{
	assert_true(id->bytes[15] < CHECKPOINTS);
	return id->bytes[15];
}

static inline struct uuid id_of(int number)
{
	struct uuid id = { { 'c' } };

	id.bytes[15] = (uint8_t)number;
	return id;
}

/* ---- the clock ---- */

int64_t clock_mono_ms(void)
{
	return play.now_ms;
}

int64_t clock_real_us(void)
{
	return play.now_ms * 1000;
}

char *clock_format(int64_t real_us, char *text, size_t cap)
{
	snprintf(text, cap, "%lld", (long long)real_us);
	return text;
}

void backoff_init(struct backoff *backoff, int64_t min_ms, int64_t max_ms)
{
	*backoff = (struct backoff){ min_ms, max_ms, 0 };
}

int64_t backoff_next(struct backoff *backoff)
{
	return backoff->min_ms;
}

void backoff_reset(struct backoff *backoff)
{
	backoff->last_ms = 0;
}

/* ---- the broker ---- */

static inline int resumes_of(int number)
{
	int count = 0;

	for (int64_t i = 0; i < play.broker.len; i++)
		if (play.broker.log[i].mark == MARK_COMMITTED && number_of(&play.broker.log[i].id) == number)
			count++;
	return count;
}

/* L2, whenever anything becomes readable. */
static inline void check_no_doubles(void)
{
	for (int i = 0; i < CHECKPOINTS; i++)
		assert_true(resumes_of(i) <= 1);
}

static inline int64_t append(enum mark mark, const struct uuid *id)
{
	struct broker *broker = &play.broker;

	assert_true(broker->len < LOG_MAX);
	broker->log[broker->len] =
		(struct log_record){ .mark = mark, .id = id == NULL ? id_of(0) : *id, .at = clock_real_us() };
	return broker->len++;
}

static inline int64_t last_stable(void)
{
	for (int64_t i = 0; i < play.broker.len; i++)
		if (play.broker.log[i].mark == MARK_OPEN)
			return i;
	return play.broker.len;
}

static inline void end_transaction(enum mark mark)
{
	bool any = false;

	for (int64_t i = 0; i < play.broker.len; i++)
		if (play.broker.log[i].mark == MARK_OPEN) {
			play.broker.log[i].mark = mark;
			any = true;
		}
	if (any)
		append(MARK_CONTROL, NULL);
	play.broker.asked = false;
	check_no_doubles();
}

static inline enum fate fenced(struct error *error)
{
	return error_set(error, FATE_RETRY, ERR_FENCED, "fenced");
}

enum fate producer_open(struct producer **ret_producer, const struct producer_settings *settings,
                        struct error *error)
{
	if (strikes())
		return trouble(error);
	*ret_producer = calloc(1, sizeof(**ret_producer));
	assert_non_null(*ret_producer);
	(*ret_producer)->report = settings->report;
	(*ret_producer)->context = settings->report_context;
	return FATE_OK;
}

void producer_close(struct producer *producer)
{
	free(producer);
}

enum fate producer_warm(struct producer *producer, const char *topic, int timeout_ms, int32_t *ret_partitions,
                        struct error *error)
{
	(void)producer;
	(void)topic;
	(void)timeout_ms;
	if (strikes())
		return trouble(error);
	if (ret_partitions != NULL)
		*ret_partitions = 6;
	return FATE_OK;
}

enum fate producer_init_transactions(struct producer *producer, int64_t patience_ms, struct error *error)
{
	(void)patience_ms;
	if (strikes())
		return trouble(error);
	end_transaction(play.broker.asked && chance(50) ? MARK_COMMITTED : MARK_ABORTED);
	producer->epoch = ++play.broker.epoch;
	return answer_lost() ? trouble(error) : FATE_OK;
}

enum fate producer_begin(struct producer *producer, struct error *error)
{
	producer->queue_len = 0;
	return strikes() ? trouble(error) : FATE_OK;
}

/* Whoever encoded it: it says what the database had in that version. */
static inline void check_told(const struct publication *publication, struct view value)
{
	struct told told;

	if (publication->resume || publication->tombstone)
		return;
	assert_int_equal(value.len, sizeof(told));
	memcpy(&told, value.data, sizeof(told));
	assert_int_equal(uuid_compare(&told.id, &publication->id), 0);
	const struct told *seen = &life_now()->seen[number_of(&publication->id)];
	assert_int_equal(publication->version, told.version);
	assert_int_equal(told.state, publication->with_resume ? GATE_RESUMED : seen->state);
	assert_true(publication->with_resume || told.version == seen->version);
	play.handed += publication->handed;
	play.followed += publication->kept;
	assert_true(!publication->kept || told.state == GATE_RESUMED);
}

enum fate producer_send(struct producer *producer, const struct outgoing *outgoing, struct error *error)
{
	const struct publication *publication = outgoing->tag;

	(void)error;
	assert_true(producer->queue_len < 4 * CHECKPOINTS);
	check_told(publication, outgoing->value);
	producer->refused = producer->refused || life_now()->off || producer->epoch != play.broker.epoch;
	producer->queue[producer->queue_len].tag = outgoing->tag;
	producer->queue[producer->queue_len++].offset =
		publication->resume && !producer->refused ? append(MARK_OPEN, &publication->id) : 0;
	if (publication->resume)
		assert_int_equal(outgoing->partition, 3);
	return FATE_OK;
}

void producer_poll(struct producer *producer, int timeout_ms)
{
	(void)producer;
	play.now_ms += timeout_ms;
}

static size_t resumes_in(const struct producer *producer)
{
	size_t count = 0;

	for (size_t i = 0; i < producer->queue_len; i++)
		count += ((const struct publication *)producer->queue[i].tag)->resume;
	return count;
}

/* Every record has its report; false when one was too large. */
static inline bool report_all(struct producer *producer)
{
	struct error error = { FATE_REJECT, ERR_TOO_LARGE, "", "too large" };
	size_t limit = play.broker.request_records;
	size_t resumes = resumes_in(producer);
	bool crowded = limit > 0 && resumes > limit;
	bool good = true;

	play.mixed += resumes > 0 && resumes < producer->queue_len;
	for (size_t i = 0; i < producer->queue_len; i++) {
		const struct publication *publication = producer->queue[i].tag;
		bool refused =
			publication->resume && (crowded || number_of(&publication->id) == play.broker.too_large);
		struct outgoing sent = { .tag = producer->queue[i].tag };
		producer->report(producer->context, &sent, refused ? -1 : producer->queue[i].offset,
		                 refused ? &error : NULL);
		good = good && !refused;
	}
	return good;
}

static inline void publish_gates(const struct producer *producer)
{
	for (size_t i = 0; i < producer->queue_len; i++) {
		const struct publication *publication = producer->queue[i].tag;
		int64_t *newest = &play.broker.gate_version[number_of(&publication->id)];
		if (!publication->resume && publication->version > *newest)
			*newest = publication->version;
	}
}

enum fate producer_commit(struct producer *producer, struct error *error)
{
	if (strikes()) {
		play.broker.asked = !life_now()->off && producer->epoch == play.broker.epoch && chance(50);
		return trouble(error);
	}
	if (producer->refused || producer->epoch != play.broker.epoch)
		return fenced(error);
	if (!report_all(producer))
		return error_set(error, FATE_REJECT, ERR_TOO_LARGE, "too large");
	end_transaction(MARK_COMMITTED);
	publish_gates(producer);
	play.now_ms += 1;
	return answer_lost() ? trouble(error) : FATE_OK;
}

/* ---- the reader of the ledger ---- */

enum fate reader_open(struct reader **ret_reader, const struct reader_settings *settings, struct error *error)
{
	assert_false(settings->read_uncommitted);
	if (strikes())
		return trouble(error);
	*ret_reader = calloc(1, sizeof(**ret_reader));
	assert_non_null(*ret_reader);
	return FATE_OK;
}

void reader_close(struct reader *reader, int64_t deadline_ms)
{
	(void)deadline_ms;
	free(reader);
}

enum fate reader_start(struct reader *reader, const struct partition_at *parts, size_t len,
                       struct error *error)
{
	(void)error;
	assert_int_equal(len, 1);
	reader->position = parts[0].offset;
	return FATE_OK;
}

enum fate reader_poll(struct reader *reader, int timeout_ms, enum reader_event *ret_event,
                      struct record *ret_record, struct error *error)
{
	if (strikes())
		return trouble(error);
	int64_t end = last_stable();
	while (reader->position < end) {
		struct log_record *record = &play.broker.log[reader->position++];
		reader->told_end = false;
		if (record->mark != MARK_COMMITTED)
			continue;
		*ret_record = (struct record){ .at = { "resumes", 3, reader->position - 1, record->at },
			                           .value = { record->id.bytes, sizeof(record->id.bytes) } };
		*ret_event = READER_RECORD;
		return FATE_OK;
	}
	*ret_event = reader->told_end ? READER_NOTHING : READER_END;
	*ret_record = (struct record){ .at = { "resumes", 3, reader->position, TIME_NONE } };
	if (reader->told_end)
		play.now_ms += timeout_ms;
	reader->told_end = true;
	return FATE_OK;
}

void record_done(struct record *record)
{
	record->value = VIEW_NULL;
}

enum fate reader_range(struct reader *reader, const char *topic, int32_t partition, int timeout_ms,
                       int64_t *ret_low, int64_t *ret_end, struct error *error)
{
	(void)reader;
	(void)topic;
	(void)partition;
	(void)timeout_ms;
	if (strikes())
		return trouble(error);
	*ret_low = play.broker.low;
	*ret_end = play.broker.len; /* the high watermark */
	return FATE_OK;
}

#endif
