/*
 * demo.h - `fermata demo` and `fermata dev`: a private PostgreSQL, a broker and a worker on this machine, with
 * nothing to configure. The demo tells the story of SESSION-808 with them and ends; dev stays until Ctrl-C.
 */
#ifndef FERMATA_CLI_DEMO_H
#define FERMATA_CLI_DEMO_H

#include "config/config.h"

/*
 * argv[0] is the command's name ("demo", "dev"); the options of the table of commands follow. config: only what
 * it says about Kafka counts, and only when the user has set kafka.bootstrap.servers; all else is made for the
 * occasion.
 *
 * Both start processes, take over SIGINT, SIGTERM and SIGHUP, and are for the main thread of a process that
 * has no others yet. Nothing is left running when they return, and nothing lying about but what --keep or a
 * failure keeps, which is said. Returns the exit code: 0; 2 usage; 69 when
 * something outside is not to be had (PostgreSQL's programs, a broker); 70 when a step went wrong that should
 * not; 75 when a deadline passed; 128 + the signal that ended it.
 */
int demo_main(const struct config *config, int argc, char **argv);
/* As demo_main; ended by a signal it returns 0: that is the way out. */
int dev_main(const struct config *config, int argc, char **argv);

#endif
