/*
 * store_sqlstate.h - what PostgreSQL's errors mean for us, and what may be repeated of them.
 *
 * Source of the classes: PostgreSQL documentation, appendix A, "PostgreSQL Error Codes"; the fates are those
 * of protocol.md ("Intake").
 */
#ifndef FERMATA_STORE_STORE_SQLSTATE_H
#define FERMATA_STORE_STORE_SQLSTATE_H

#include "core/error.h"

#include <stdbool.h>

/* The fields of a server's error that are of use; each may be NULL. Borrowed. */
struct sql_error {
	const char *sqlstate; /* five characters; NULL when the connection itself broke */
	const char *severity; /* not translated: ERROR, FATAL, PANIC */
	const char *primary;
	const char *table;
	const char *column;
	const char *constraint;
	const char *type;
};

/* The fate of a SQLSTATE and the code that goes with it. NULL (no answer came) is RETRY. */
enum fate sqlstate_fate(const char *sqlstate, enum error_code *ret_code);

/*
 * Fills *error and returns its fate; `doing` says what was asked of PostgreSQL. The server's own words are
 * repeated only in the classes where they cannot hold a value of a record: a value that was refused
 * (classes 22, 23 and whatever is not known) is described by table, column, constraint and type alone, and
 * the detail of an error never is. What ends the session (severity FATAL or PANIC) is RETRY.
 */
enum fate sqlstate_error(const struct sql_error *sql, const char *doing, struct error *error);

#endif
