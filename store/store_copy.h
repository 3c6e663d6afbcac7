/*
 * store_copy.h - many new rows of some tables by COPY, in the transaction that is open: a third of what an INSERT
 * a row costs the server. Outside of the pipeline, which has to be empty; the tables go in one query, so that it is a wait
 * for the server a table and one more.
 *
 * Source: PostgreSQL documentation, COPY, "Binary Format" (signature, flags, extension; then for each row the
 * number of its fields and each field behind its length, -1 for null, in the formats of store_param.h).
 */
#ifndef FERMATA_STORE_STORE_COPY_H
#define FERMATA_STORE_STORE_COPY_H

#include "store/store_connection.h"

struct copy {
	const struct statement *statement; /* COPY ... FROM STDIN (FORMAT binary) */
	size_t rows;
	/* Adds the fields of row `at` in the order of the statement's columns. */
	void (*put)(struct params *params, const void *context, size_t at);
	const void *context;
};

/* Sends the rows of each, in their order, and reads the answers. A row that is there already is RETRY with ERR_STALE, and
 * is found by the constraint; whatever fails leaves a transaction that can only be rolled back. */
FM_MUSTCHECK enum fate store_copy(struct store *store, const struct copy *copies, size_t len,
                                  struct error *error);

#endif
