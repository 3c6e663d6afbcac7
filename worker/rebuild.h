/*
 * rebuild.h - `fermata rebuild`: an empty database and whole topics. R2 of every shard first, many at once; then the
 * suspends and the approvals up to where they ended at the start, by several intakes without a group; then doubt.
 * It is a worker's own machinery without relays and reaper: nothing is published by it.
 *
 * While it runs, the rows of ledger_offset say so in the place of the digest of the routes. That is how one that was
 * interrupted is known again, and a plain worker that is started on what it left goes on in the same way.
 */
#ifndef FERMATA_WORKER_REBUILD_H
#define FERMATA_WORKER_REBUILD_H

#include "config/config.h"
#include "store/store_rebuild.h"

enum rebuild_phase { REBUILD_RESUMES, REBUILD_SUSPENDS, REBUILD_APPROVALS, REBUILD_PHASES };

/* How far it is. Records are counted by their offsets, markers of transactions among them. */
struct rebuild_progress {
	struct {
		int64_t read;
		int64_t of;
		int64_t per_s; /* -1: not known yet */
	} phases[REBUILD_PHASES];
	enum rebuild_phase now;
	int64_t left_s; /* an estimate; -1: none yet */
	bool went_on;   /* it goes on where an interrupted one stopped */
};

/* A partition whose beginning is gone, or which could not be read to its end. */
struct rebuild_place {
	const char *topic; /* lives as long as the report */
	int32_t partition;
	int64_t low;
	int64_t first_at; /* the time of the first record there still is; TIME_NONE: none is */
	bool waits;       /* an alarm (or a registry) holds it up: it was not read to its end */
};

struct rebuild_report {
	bool interrupted; /* by a signal: nothing else of this is filled but progress */
	bool went_on;
	struct rebuild_progress progress;
	struct contents contents;
	int64_t letters_found; /* bad records whose dead letter was there */
	int64_t letters_sent;  /* and those that had none and have one now */
	int64_t swept;         /* early decisions whose time was over */
	int64_t took_ms;
	struct rebuild_place *places;
	size_t places_len;
	struct arena *arena; /* of the places */
};

struct rebuild_options {
	const char *const *resumes_topics; /* besides those of the configuration */
	size_t resumes_topics_len;
	void (*progress)(void *context, const struct rebuild_progress *progress); /* about once a second */
	void *context;
};

/* May these topics be taken for those of resumes? FATAL ERR_USAGE: one is another of the configuration's. For a dry run
 * as well. */
FM_MUSTCHECK enum fate rebuild_check(const struct config *config, const struct rebuild_options *options,
                                     struct error *error);
/* FATAL ERR_USAGE: configuration. REJECT ERR_NO: the database is not empty, or workers are at work. RETRY ERR_SERVICE:
 * a service is away, or stayed away for a minute; start it again. Signals are taken while it runs: SIGTERM and SIGINT
 * end it, with OK and ret_report->interrupted. rebuild_report_done whatever is returned. */
FM_MUSTCHECK enum fate rebuild_run(const struct config *config, const struct rebuild_options *options,
                                   struct rebuild_report *ret_report, struct error *error);
void rebuild_report_done(struct rebuild_report *report);

/* "resumes", "suspends", "approvals" */
const char *rebuild_phase_name(enum rebuild_phase phase);

#endif
