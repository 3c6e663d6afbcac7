/*
 * store_pipeline.h - statements sent without waiting for answers, in libpq's pipeline mode.
 *
 * Source: PostgreSQL documentation, 34.5 "Pipeline Mode". The connection is non-blocking and is read while it
 * is written: a server that waits for its answers to be read would otherwise never read what is sent.
 * Invariant: `pending` holds one entry for each thing sent whose answer is not complete, in order.
 */
#ifndef FERMATA_STORE_STORE_PIPELINE_H
#define FERMATA_STORE_STORE_PIPELINE_H

#include "store/store_param.h"

#include <libpq-fe.h>

/* A statement, by name: it is prepared on its first use on a connection. Its address is its identity. */
struct statement {
	const char *name;
	const char *text;
};

#define STATEMENTS_MAX 160 /* more than there are */

/* Looks at rows that came, possibly more than once for one statement. A failure ends the pipeline. */
typedef enum fate store_rows(void *context, const PGresult *rows, struct error *error);

/* What the answers to one statement are for. */
struct answer {
	int64_t *add_count; /* the rows that the statement touched or gave are added to it; may be NULL */
	store_rows *rows;   /* may be NULL */
	void *context;
	bool by_row;     /* rows come one at a time, so that large ones do not stand in memory twice */
	const char *tag; /* the command tag that must come back, or NULL */
};

enum pending_kind { PENDING_PREPARE, PENDING_STATEMENT, PENDING_SYNC };

struct pending {
	enum pending_kind kind;
	const struct statement *statement; /* NULL: Sync */
	struct answer answer;
	bool by_row_set;
};

struct pipeline {
	PGconn *pg; /* NULL: not connected */
	bool prepare;
	const struct statement
		*prepared[STATEMENTS_MAX]; /* those that the server knows, or will after the answer */
	size_t prepared_len;
	struct pending *pending; /* a list that begins at `first` and is emptied by every flush */
	size_t pending_first;
	size_t pending_len;
	size_t pending_cap;
	size_t unflushed;     /* bytes sent since the socket last took everything */
	uint64_t round_trips; /* flushes so far */
	bool broken;          /* the connection is of no more use */
	struct error fault;   /* the first one; fate OK: none */
};

void pipeline_init(struct pipeline *pipeline, bool prepare);
void pipeline_done(struct pipeline *pipeline);
/* Takes a connection over, sets it non-blocking and in pipeline mode. */
FM_MUSTCHECK enum fate pipeline_start(struct pipeline *pipeline, PGconn *pg, struct error *error);
/* Closes the connection and forgets everything. */
void pipeline_drop(struct pipeline *pipeline);

/* Queues a statement; params may be NULL. Faults are kept; after one nothing more is sent. */
void pipeline_send(struct pipeline *pipeline, const struct statement *statement, struct params *params,
                   const struct answer *answer);
/* Was nothing sent, and did nothing fail, since the last flush? */
bool pipeline_is_idle(const struct pipeline *pipeline);
/* Sync, and reads up to it. The first fault since the last flush is the fate, and is forgotten. On RETRY the
 * connection should be dropped. */
FM_MUSTCHECK enum fate pipeline_flush(struct pipeline *pipeline, struct error *error);

/* Can the parameters be sent? Else REJECT. */
FM_MUSTCHECK enum fate pipeline_params_good(const struct params *params, const struct statement *statement,
                                            struct error *error);

/*
 * One or more COPY ... FROM STDIN, between two flushes and outside of pipeline mode, which the last of these calls, and
 * each that fails, goes back to. After RETRY the connection should be dropped.
 * text: all of them, with semicolons between them; statement is the first.
 */
FM_MUSTCHECK enum fate pipeline_copy_begin(struct pipeline *pipeline, const struct statement *statement,
                                           const char *text, struct error *error);
/* Sends what is in the buffer, and empties it. */
FM_MUSTCHECK enum fate pipeline_copy_put(struct pipeline *pipeline, const struct statement *statement,
                                         struct buffer *buffer, struct error *error);
/* Ends one and goes on with the next. *ret_rows: how many rows the server took of the first. */
FM_MUSTCHECK enum fate pipeline_copy_next(struct pipeline *pipeline, const struct statement *statement,
                                          const struct statement *next, int64_t *ret_rows,
                                          struct error *error);
/* Ends the last one. */
FM_MUSTCHECK enum fate pipeline_copy_end(struct pipeline *pipeline, const struct statement *statement,
                                         int64_t *ret_rows, struct error *error);
/* Takes it back: the transaction has failed then. What comes of it the next call on the connection finds. */
void pipeline_copy_give_up(struct pipeline *pipeline);

/* Fills *error from a failed result (NULL: the connection broke); returns its fate. */
enum fate pipeline_result_error(PGconn *pg, const PGresult *result, const char *doing, struct error *error);

#endif
