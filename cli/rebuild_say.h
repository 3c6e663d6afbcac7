/* rebuild_say.h - what `fermata rebuild` says: how far it is, on stderr; what came back, on stdout. */
#ifndef FERMATA_CLI_REBUILD_SAY_H
#define FERMATA_CLI_REBUILD_SAY_H

#include "cli/cli.h"
#include "worker/rebuild.h"
#include "worker/survey.h"

struct rebuild_saying {
	bool json;
	bool terminal;   /* stderr is one: a line that is written over, each second; else a line every 10 s */
	bool begun;      /* something was said */
	int64_t said_ms; /* mono */
};

/* For struct rebuild_options: context is a struct rebuild_saying. */
void rebuild_say_progress(void *context, const struct rebuild_progress *progress);
/* The last of it, however it ended. */
void rebuild_say_over(struct rebuild_saying *saying, const struct rebuild_progress *progress);
FM_MUSTCHECK enum fate rebuild_say_report(const struct cli *cli, const struct rebuild_report *report,
                                          struct error *error);
FM_MUSTCHECK enum fate rebuild_say_survey(const struct cli *cli, const struct survey *survey,
                                          struct error *error);

#endif
