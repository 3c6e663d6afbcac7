/*
 * database.h - what a measurement asks of PostgreSQL beside what the workers do: a database of its own, numbers to watch, rows
 * as COPY gives them. One connection, for one thread; nothing here is retried.
 *
 * Errors: FATAL ERR_SERVICE (exit 69) with what PostgreSQL said; FATAL ERR_USAGE for a right that is missing.
 */
#ifndef FERMATA_BENCH_DATABASE_H
#define FERMATA_BENCH_DATABASE_H

#include "core/memory.h"

struct database;

/* The connection string with another database in it, what it says beside that left as it is; for libpq, so that
 * variables and service files count too. FATAL ERR_USAGE: it is none. cap >= 64. */
FM_MUSTCHECK enum fate database_dsn(const char *dsn, const char *name, char *ret_dsn, size_t cap,
                                    struct error *error);

FM_MUSTCHECK enum fate database_open(struct database **ret_database, const char *dsn, struct error *error);
/* NULL is fine. */
void database_close(struct database *database);

/* Makes an empty database, owned by whom the connection is of. */
FM_MUSTCHECK enum fate database_create(struct database *database, const char *name, struct error *error);
/* Ends its connections and removes it; one that is not there counts as removed. */
FM_MUSTCHECK enum fate database_drop(struct database *database, const char *name, struct error *error);

/* Statements that give back nothing, or nothing that matters. */
FM_MUSTCHECK enum fate database_run(struct database *database, const char *sql, struct error *error);
/* The same for one that takes long: wait is called again and again meanwhile, and what it fails with cancels the statement. */
typedef enum fate database_wait(void *context, struct error *error);
FM_MUSTCHECK enum fate database_run_long(struct database *database, const char *sql, database_wait *wait,
                                         void *context, struct error *error);
/* The number that a query gives back, with $1 as text (or NULL). */
FM_MUSTCHECK enum fate database_number(struct database *database, const char *sql, const char *parameter,
                                       int64_t *ret_number, struct error *error);
/* The text that a query gives back, cut at cap. */
FM_MUSTCHECK enum fate database_text(struct database *database, const char *sql, char *ret_text, size_t cap,
                                     struct error *error);

/* Rows in COPY's binary format, one behind the other. */
struct copy_rows {
	struct buffer bytes;
	size_t *ends; /* of each row, in bytes */
	size_t len;
	size_t cap;
};

void copy_rows_init(struct copy_rows *rows, size_t ceiling);
void copy_rows_done(struct copy_rows *rows);
/* Says that what was appended to bytes since the last row is a row. FATAL ERR_MEMORY, also for what did not fit. */
FM_MUSTCHECK enum fate copy_rows_end(struct copy_rows *rows, struct error *error);

/* Appends what a query gives back. */
FM_MUSTCHECK enum fate database_copy_out(struct database *database, const char *query, struct copy_rows *rows,
                                         struct error *error);
/* COPY table FROM STDIN of the rows from first to end (not included), within the transaction that is open. */
FM_MUSTCHECK enum fate database_copy_in(struct database *database, const char *table,
                                        const struct copy_rows *rows, size_t first, size_t end,
                                        struct error *error);

#endif
