/* run_inner.h - one run of a measurement, as the files of this room share it. */
#ifndef FERMATA_BENCH_RUN_INNER_H
#define FERMATA_BENCH_RUN_INNER_H

#include "bench/bench.h"
#include "bench/database.h"
#include "bench/session.h"
#include "consumer/reader.h"
#include "producer/producer.h"

struct run {
	const struct bench_plan *plan;
	const struct bench_place *place;
	const struct bench_host *host;
	struct database *database;
	struct session_writer *writer;
	struct producer *producer; /* of suspends and decisions; gathers a little */
	struct reader *resumes;    /* read_committed, from the beginning on */
	struct reader *ends;       /* read_uncommitted, and reads nothing: where the resumes end */
	struct buffer value;
	struct uuid *ids;                     /* of the sessions, by number */
	uint8_t *resumed;                     /* was its resume seen? */
	uint32_t made;                        /* sessions whose suspend event was sent */
	int64_t suspends;                     /* suspend events that were sent */
	uint32_t sent;                        /* decisions that were sent */
	uint32_t decided;                     /* sessions below have a decision, on the topic or in the outbox */
	int64_t looked_at_ms;                 /* when the host was last asked whether to go on */
	int64_t went_on_ms;                   /* when something last went on */
	double suspends_per_s, resumes_per_s; /* as measured apart; 0: not measured */
	double zstd_sum; /* bytes of sampled suspend events when zstd compresses them, and how many there are */
	int64_t zstd_len;
};

/* ---- time ---- */

int64_t now_us(void);

/* How many in how long. */
struct timing {
	int64_t began_us;
	int64_t ended_us;
	int64_t count;
};

double timing_rate(const struct timing *timing);
double timing_seconds(const struct timing *timing);

/* Durations of which percentiles are wanted, in us. */
struct samples {
	int64_t *values;
	size_t len;
	size_t cap;
};

FM_MUSTCHECK enum fate samples_init(struct samples *samples, size_t cap, struct error *error);
void samples_done(struct samples *samples);
void samples_add(struct samples *samples, int64_t us);
/* In ms; sorts. share: 0.5, 0.99, 1 for the largest. */
double samples_at(struct samples *samples, double share);

/* ---- going on ---- */

/* Asks the host now and then; RETRY too when nothing has gone on for two minutes. */
FM_MUSTCHECK enum fate run_goes_on(struct run *run, struct error *error);
/* Waits ms, then the same. */
FM_MUSTCHECK enum fate run_pause(struct run *run, int64_t ms, struct error *error);
/* One more figure: size and settled are filled in. */
void run_give(struct run *run, const struct bench_figure *figure);
/* Something has gone on. */
void run_progress(struct run *run, const char *doing, int64_t done, int64_t of);
/* A statement that takes long, on the workers' database; doing: what it does, for people. */
FM_MUSTCHECK enum fate run_long(struct run *run, const char *sql, const char *doing, struct error *error);
FM_MUSTCHECK enum fate run_start_worker(struct run *run, long *ret_pid, struct error *error);
FM_MUSTCHECK enum fate run_await_ready(struct run *run, struct error *error);
/* Puts count more sessions to sleep: their suspend events, a worker that takes them in, and their gate events published. The worker
 * still runs then. */
FM_MUSTCHECK enum fate run_take_in(struct run *run, uint32_t count, struct error *error);
const char *run_topic(const struct run *run, enum param topic);

/* ---- traffic (traffic.c) ---- */

/* Puts count more suspend events on the topic and waits until Kafka has them. */
FM_MUSTCHECK enum fate run_send_suspends(struct run *run, uint32_t count, struct error *error);
/* The same with decisions on the next sessions that have none. */
FM_MUSTCHECK enum fate run_send_decisions(struct run *run, uint32_t count, struct error *error);
/* One of each, handed over only. */
FM_MUSTCHECK enum fate run_send_suspend(struct run *run, struct error *error);
/* Suspend seq of `of` of any session, one that no other function here knows of; handed over only. */
FM_MUSTCHECK enum fate run_send_grown(struct run *run, uint32_t number, uint32_t seq, uint32_t of,
                                      struct error *error);
FM_MUSTCHECK enum fate run_send_decision(struct run *run, struct producer *producer, struct error *error);
FM_MUSTCHECK enum fate run_wait_sent(struct run *run, struct producer *producer, struct error *error);
/* Hands a record over, waiting while the queue is full. */
FM_MUSTCHECK enum fate run_hand_over(struct run *run, struct producer *producer,
                                     const struct outgoing *outgoing, struct error *error);
/* A producer with linger.ms as given. */
FM_MUSTCHECK enum fate run_producer(const struct run *run, const char *linger_ms,
                                    const char *transactional_id, struct producer **ret_producer,
                                    struct error *error);
/* How many suspends the database has taken in. */
FM_MUSTCHECK enum fate run_taken_in(struct run *run, int64_t *ret_count, struct error *error);
/* Until the database has taken in all suspends that were sent; ret_timing (or NULL): from the first progress on. */
FM_MUSTCHECK enum fate run_await_suspends(struct run *run, struct timing *ret_timing, struct error *error);
/* Until no gate event is left to publish. */
FM_MUSTCHECK enum fate run_await_gates(struct run *run, struct error *error);

/* ---- resumes (resumes.c) ---- */

typedef enum fate take_resume(void *context, const struct record *record, uint32_t number,
                              struct error *error);

/* A reader of all partitions of a topic from the beginning on (or one that reads nothing, and may ask where a
 * topic ends). */
FM_MUSTCHECK enum fate run_asker(const struct run *run, struct reader **ret_reader, struct error *error);
FM_MUSTCHECK enum fate run_reader(const struct run *run, const char *topic, struct reader **ret_reader,
                                  struct error *error);
/* One poll of the resumes; *ret_seen tells how many came (0 or 1). A resume that came before is FATAL ERR_BUG. */
FM_MUSTCHECK enum fate run_poll_resume(struct run *run, int timeout_ms, take_resume *take, void *context,
                                       uint32_t *ret_seen, struct error *error);
/* Until count more were read. take may be NULL. */
FM_MUSTCHECK enum fate run_read_resumes(struct run *run, uint32_t count, take_resume *take, void *context,
                                        struct error *error);
/* Starts a worker and reads so many; the time is from when the first one is on the topic, not committed yet, until the last
 * one is read. */
FM_MUSTCHECK enum fate run_time_resumes(struct run *run, uint32_t count, take_resume *take, void *context,
                                        struct timing *ret_timing, struct error *error);

/* ---- the phases ---- */

FM_MUSTCHECK enum fate phase_suspend(struct run *run, struct error *error);
FM_MUSTCHECK enum fate phase_asleep(struct run *run, struct error *error);
FM_MUSTCHECK enum fate phase_decide(struct run *run, struct error *error);
FM_MUSTCHECK enum fate phase_outbox(struct run *run, struct error *error);
FM_MUSTCHECK enum fate phase_together(struct run *run, struct error *error);
FM_MUSTCHECK enum fate phase_latency(struct run *run, struct error *error);
FM_MUSTCHECK enum fate phase_growth(struct run *run, struct error *error);
/* Bytes of all tables and indexes of the workers' database. */
FM_MUSTCHECK enum fate run_stored(struct run *run, int64_t *ret_bytes, struct error *error);

/* ---- the limits ---- */

/* Rows a second of COPY of the rows that the suspend phase left: as they are, and with payloads that are neither sealed nor
 * compressed. *ret_rows: how many that were. */
FM_MUSTCHECK enum fate limit_copy(struct run *run, struct timing *ret_sealed, struct timing *ret_plain,
                                  struct error *error);
/* The suspends topic, read from its beginning to the end. */
FM_MUSTCHECK enum fate limit_consume(struct run *run, struct timing *ret_timing, struct error *error);

/* Records to be produced again, as they were read. */
struct kept {
	struct arena *arena;
	struct outgoing *records;
	size_t len;
	size_t cap;
	bool full;
};

FM_MUSTCHECK enum fate kept_init(struct kept *kept, size_t cap, struct error *error);
void kept_done(struct kept *kept);
/* A take_resume with a struct kept; what does not fit any more is passed over. */
FM_MUSTCHECK enum fate kept_take(void *context, const struct record *record, uint32_t number,
                                 struct error *error);
/* All of them to the topic for it, in transactions as the relay makes them, a producer a partition. */
FM_MUSTCHECK enum fate limit_produce(struct run *run, const struct kept *kept, struct timing *ret_timing,
                                     struct error *error);

#endif
