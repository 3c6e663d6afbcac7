/*
 * dev_postgres.h - a private PostgreSQL cluster: loopback and a socket, a password made up for it, fsync on.
 * Root runs it as "postgres", or "nobody" where that user is missing: PostgreSQL refuses root.
 */
#ifndef FERMATA_CLI_DEV_POSTGRES_H
#define FERMATA_CLI_DEV_POSTGRES_H

#include "cli/dev_process.h"

struct postgres {
	struct process process;
	char data[DEV_PATH_MAX]; /* the database directory */
	char socket[DEV_PATH_MAX];
	char log[DEV_PATH_MAX];
	char password[33];
	int port;
	char dsn[256];    /* libpq connection string of the database "fermata" */
	char version[64]; /* "15.14" */
	char user[64];    /* whom it runs as; "" : the caller */
};

/* Has root to run it as somebody else, who must be able to enter the directory? */
bool postgres_drops_root(void);
/*
 * Makes a cluster below root and starts it, with an empty database "fermata" owned by its superuser "fermata".
 * FATAL with ERR_SERVICE: there are no binaries, or no user to run them as (the message says what to install).
 * RETRY with ERR_SERVICE: it does not come up. postgres->log names the log to look at from the start.
 * What was started is stopped by postgres_stop in any case.
 */
FM_MUSTCHECK enum fate postgres_start(struct postgres *postgres, const char *root, const char *logs,
                                      struct error *error);
/* Writes all that is in memory to the database's files. */
FM_MUSTCHECK enum fate postgres_checkpoint(const struct postgres *postgres, struct error *error);
void postgres_stop(struct postgres *postgres);

#endif
