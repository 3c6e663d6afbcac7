/*
 * store_connection.h - the inside of a store: the connection, and one pipeline of statements at a time.
 *
 * A public call begins a transaction, sends its statements, which are only queued, and flushes: a Sync goes
 * out, and everything is read up to it. The first fault of a pipeline is kept and the rest of it is drained;
 * a fault that is RETRY drops the connection, so that the next call is made on a new one.
 */
#ifndef FERMATA_STORE_STORE_CONNECTION_H
#define FERMATA_STORE_STORE_CONNECTION_H

#include "store/store.h"
#include "store/store_pipeline.h"

/* ---- one transaction ---- */

enum transaction_kind {
	TRANSACTION_WRITE,    /* READ COMMITTED: each statement sees what was committed before it */
	TRANSACTION_READ,     /* the same, read-only; joins a transaction that is open */
	TRANSACTION_SNAPSHOT, /* REPEATABLE READ, read-only; no day of payloads is dropped while it is open */
};

/* Connects if need be and queues BEGIN. */
FM_MUSTCHECK enum fate transaction_begin(struct store *store, enum transaction_kind kind,
                                         struct error *error);
/* Sends Sync, reads all answers; the transaction stays open. The first fault of the pipeline is the fate. */
FM_MUSTCHECK enum fate transaction_flush(struct store *store, struct error *error);
/* Relays of other processes are told by NOTIFY, which goes with the COMMIT and needs no wait of its own: those of these
 * shards (store_shard_bit); 0: none. */
void transaction_notify(struct store *store, uint64_t shards);
/* Queues COMMIT and flushes. RETRY when the server answers that it rolled back. */
FM_MUSTCHECK enum fate transaction_commit(struct store *store, struct error *error);
/* The end of a call whose statements need no looking at before COMMIT: commits with the same flush, rolls back
 * after a fault. A transaction that was joined is only flushed. */
FM_MUSTCHECK enum fate transaction_finish(struct store *store, struct error *error);
/* Rolls back and fills *error: RETRY, ERR_STALE. */
enum fate transaction_stale(struct store *store, struct error *error, const char *what);
/* Is a transaction open on this connection? Else RETRY, for the connection that it was on is gone. */
FM_MUSTCHECK enum fate transaction_open(const struct store *store, struct error *error);

/* ---- statements of the transaction ---- */

/* The empty parameters for the next statement. */
struct params *store_params(struct store *store);
/* Queues a statement. params: those of store_params, or NULL for none. answer may be NULL. A fault (a value
 * that PostgreSQL cannot hold, a lost connection) is kept for transaction_flush, and nothing more is sent. */
void store_send(struct store *store, const struct statement *statement, struct params *params,
                const struct answer *answer);

/* ---- the connection ---- */

/* For what is not a statement among others (store_copy.h). */
struct pipeline *store_pipeline(struct store *store);

/* Closes the connection; the next call makes a new one. */
void store_drop(struct store *store);
/* For store_migrate: the plain connection, out of pipeline mode, and back. */
FM_MUSTCHECK enum fate store_plain_begin(struct store *store, PGconn **ret_pg, struct error *error);
void store_plain_end(struct store *store);
/* Fills *error from a result of a connection and drops it when it is RETRY. */
enum fate store_result_error(struct store *store, const PGresult *result, const char *doing,
                             struct error *error);

#endif
