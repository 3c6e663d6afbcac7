/*
 * intake.h - both topics into PostgreSQL, one transaction a batch (protocol.md, "Intake"). Inside of the
 * worker only: the pieces of one intake.
 *
 * Two threads work at it: one collects a batch (reads, decodes, checks, seals) while the other has the one before it
 * with PostgreSQL (intake_stage.c). No more than that is under way: one transaction, and one batch that is collected
 * meanwhile. What is in struct intake belongs to the collecting thread; while a batch is being stored, the connection,
 * the letters, `work`, `targets`, `seen`, and what a commit changes of a part, are the other's, and whoever wants them
 * settles first. So whatever looks at the database finds it as the last commit left it, and a batch that fails is known
 * before the next is begun.
 *
 * There is one way back from every trouble: intake_restart drops what was fetched, reads the positions
 * from PostgreSQL and fetches from there. Nothing is lost by it, for nothing is durable but in a commit
 * that moves the positions too.
 */
#ifndef FERMATA_WORKER_INTAKE_H
#define FERMATA_WORKER_INTAKE_H

#include "worker/breaker.h"
#include "worker/judge.h"
#include "worker/worker.h"

/* A partition that the group gave to this worker. */
struct part {
	const char *topic; /* the configuration's */
	bool suspends;     /* which of the two topics */
	int32_t partition;
	int64_t durable;      /* `next` of its row in kafka_offset, or POSITION_NEW */
	int64_t received;     /* the position after all that was collected; never durable before its commit */
	int64_t handed;       /* received as it was when the batch that is being stored was closed */
	int64_t told;         /* the position that Kafka was last told of, for dashboards */
	bool alarmed;         /* something is wrong with it: it is not fetched */
	bool verify;          /* the first record is to be compared with what is remembered, and passed over */
	struct position last; /* what is remembered; only the fields last_... and has_last */

	/* Its next record is in a schema that the registry is asked for; it is not fetched until there is news. */
	bool parked;
	bool waits; /* and its row says so */
	struct record held;
	uint64_t news;     /* learn_count when it was parked */
	int64_t parked_ms; /* mono: since when */
	int64_t tried_ms;  /* mono: when its schema was looked for last */

	/* Most of its records became dead letters (intake_breaker.c). */
	struct breaker breaker;
	bool stopped;        /* it is not fetched */
	bool probing;        /* but for a try */
	bool said;           /* its row says that it is stopped */
	int64_t probe_at_ms; /* mono: when it is tried next */
	uint64_t tried_news; /* learn_count then: with news of schemas it is tried at once */
	int64_t stopped_at;  /* offset: the first record that was not taken in */
	int64_t let_through; /* what becomes dead below that offset is not counted: an operator knows of it */
};

struct letters_known;

/* What `fermata rebuild` asks for. All zeros: what a worker does. */
struct intake_options {
	const struct partition_at *parts; /* these, and no group; NULL: those that the group gives */
	size_t parts_len;
	size_t batch_records;          /* at least so many fit into a batch */
	struct letters_known *letters; /* dead letters that are there already and are not sent again, or NULL */
};

struct intake {
	struct worker *worker;
	struct intake_options options;
	const char *suspends_topic;
	const char *approvals_topic;
	struct reader *reader;
	struct store *store;
	struct producer *letters;
	struct codec *codec;
	struct codec *judging;   /* of the thread that stores: the judge's, and for what is handed over */
	struct arena *arena;     /* of the items of the batch */
	size_t arena_cap;        /* its ceiling */
	struct arena *work;      /* of one attempt to write them */
	struct arena *scratch;   /* of one record being decoded */
	struct arena *positions; /* of one look at kafka_offset */
	struct judge_settings judge;

	struct part *parts;
	struct partition_at *reports; /* room for one of each, for what Kafka is told */
	size_t parts_len;
	bool running;          /* fetching; else waiting for restart_at_ms, or without an assignment */
	int64_t restart_at_ms; /* mono */
	struct backoff backoff;
	int64_t look_at_ms; /* mono: when the positions are looked at next */
	bool kafka_away;    /* the reader said so, and nobody has said otherwise since */
	int64_t ask_at_ms;  /* mono: when Kafka is asked next whether it is there again */

	uint64_t connection; /* store_reconnects as it was when the positions were last believed */

	/* Approvals wait until every suspends partition has reached the end that stood at the start. */
	bool approvals_open;
	bool targets_known;
	int64_t *targets; /* by partition of the suspends topic */
	int64_t *seen;    /* the highest position seen of each */
	int32_t targets_len;

	/* The batch that is being collected. */
	struct item *items;
	struct item **order; /* room for a pointer to each of them */
	size_t items_len;
	size_t items_cap;
	size_t bytes;
	size_t bytes_cap;
	bool moved;         /* some part's received is ahead of its handed */
	bool full;          /* and `next` is the first record that does not fit into it */
	struct record next; /* not yet received */

	struct stage *stage; /* NULL: there is no other thread, a batch is stored at once */

	size_t breaker_records; /* worker.breaker_records; 0: nothing is ever stopped */
	uint8_t *outcomes;      /* the rings of all parts */
};

/* ---- intake.c: the thread ---- */

/* Runs until the worker stops. */
void intake_run(struct worker *worker, const struct intake_options *options);
/* What it takes to understand and to judge, without anything to read from or to send letters with. Close it
 * whatever is returned. */
FM_MUSTCHECK enum fate intake_open_desk(struct intake *intake, struct worker *worker,
                                        const struct intake_options *options, struct error *error);
void intake_close(struct intake *intake);

/* ---- intake_parts.c: assignment and positions ---- */

/* These partitions are ours from now on: nothing is fetched until a restart. */
FM_MUSTCHECK enum fate intake_given(struct intake *intake, const struct partition_at *given, size_t len,
                                    struct error *error);
/* The same with what the group gives. */
FM_MUSTCHECK enum fate intake_assigned(struct intake *intake, struct error *error);
void intake_revoked(struct intake *intake);
/* Waits for what is being stored, drops what was collected and stops fetching; a restart follows after wait_ms. */
void intake_restart_in(struct intake *intake, int64_t wait_ms);
/* Reads the positions and fetches from there; approvals only when they may be judged. */
FM_MUSTCHECK enum fate intake_restart(struct intake *intake, struct error *error);
/* The record waits for its schema, and its partition with it (takes the record over). */
FM_MUSTCHECK enum fate intake_park(struct intake *intake, struct part *part, struct record *record,
                                   struct error *error);
/* Every tick: partitions that waited go on when there is news of schemas, or now and then without. */
FM_MUSTCHECK enum fate intake_look_at_parked(struct intake *intake, struct error *error);
/* Compares rows of kafka_offset with what this worker believes: its own partitions stand where it left
 * them (or where moves, which may be NULL, have just put them), and no suspends partition has gone back.
 * False: a restart is needed, and when suspends went back approvals wait again as after a start. */
bool intake_positions_hold(struct intake *intake, const struct position *rows, size_t len,
                           const struct move *moves, size_t moves_len);
/* Every 5 s, and oftener while approvals wait: looks at the positions. */
FM_MUSTCHECK enum fate intake_look(struct intake *intake, struct error *error);
struct part *intake_part(struct intake *intake, const char *topic, int32_t partition);
/* The partition cannot be read any more: it is left alone, the row says so, and so does the log. */
FM_MUSTCHECK enum fate intake_alarm(struct intake *intake, struct part *part, const char *why,
                                    struct error *error);
/* The same, for what was to be read next, up to low, the first offset that is still there. */
FM_MUSTCHECK enum fate intake_alarm_gone(struct intake *intake, struct part *part, int64_t low,
                                         struct error *error);

/* ---- intake_breaker.c: partitions most of whose records become dead letters ---- */

/* Windows for all parts of a new assignment, empty. */
FM_MUSTCHECK enum fate intake_breakers_new(struct intake *intake, struct error *error);
/* Before letters are sent and a run of items is committed: RETRY with ERR_STALE when a part is stopped by it. */
FM_MUSTCHECK enum fate intake_breaker_check(struct intake *intake, struct item *const *items, size_t len,
                                            struct error *error);
/* After the commit. */
void intake_breaker_note(struct intake *intake, struct item *const *items, size_t len);
/* At a restart: what the row (or NULL) says of it is taken over; is the part to be fetched? at_end: no record stands
 * behind its position. */
bool intake_breaker_place(struct intake *intake, struct part *part, const struct position *row, bool at_end);
/* Rows of parts that were stopped, or go on, say so. */
FM_MUSTCHECK enum fate intake_breaker_say(struct intake *intake, struct error *error);
/* The same, with every look at the rows; asks for a restart when one is to be tried, or let through. */
FM_MUSTCHECK enum fate intake_breaker_look(struct intake *intake, const struct position *rows, size_t len,
                                           struct error *error);

/* ---- intake_item.c: one record ---- */

/* Decodes, checks and seals; what is wrong makes the item dead. RETRY: not now, or with ERR_MEMORY: not in
 * what is left of the batch's memory. */
FM_MUSTCHECK enum fate intake_understand(struct intake *intake, struct item *item, struct error *error);

/* ---- intake_batch.c: a batch ---- */

/* Adds a record to the batch (takes it over). */
FM_MUSTCHECK enum fate intake_add(struct intake *intake, struct part *part, struct record *record,
                                  struct error *error);
void intake_drop_batch(struct intake *intake);
/* Settles, then judges, writes and commits what was collected, in this thread. RETRY: a restart is needed. */
FM_MUSTCHECK enum fate intake_run_batch(struct intake *intake, struct error *error);

/* What is stored in one go. */
struct batch {
	struct item *items;
	struct item **order;
	size_t len;
	struct arena *arena;
};

/* The parts as they are now are what the batch moves to. */
void intake_close_batch(struct intake *intake);
/* Judges, writes and commits. */
FM_MUSTCHECK enum fate intake_store(struct intake *intake, const struct batch *batch, struct error *error);
/* Then, in the collecting thread: all is well, and Kafka is told. */
void intake_stored(struct intake *intake);
void intake_batch_done(struct batch *batch);

/* ---- intake_stage.c: the other thread ---- */

FM_MUSTCHECK enum fate intake_stage_open(struct intake *intake, struct error *error);
/* Waits for what is being stored. */
void intake_stage_close(struct intake *intake);
/* Is a batch with the other thread, or has it one whose end was not taken up? */
bool intake_is_storing(const struct intake *intake);
/* Is there an end to be taken up? */
bool intake_has_ended(const struct intake *intake);
/* Waits until nothing is being stored; its end is left to be taken up by intake_settle. */
void intake_wait(struct intake *intake);
/* Waits too, and takes up what came of it. RETRY: a restart is needed, for what was collected since then stands on what
 * is not there. */
FM_MUSTCHECK enum fate intake_settle(struct intake *intake, struct error *error);
/* Settles, then gives the other thread what was collected and begins a new batch. Without one, intake_run_batch. */
FM_MUSTCHECK enum fate intake_pass_on(struct intake *intake, struct error *error);

#endif
