/*
 * survey.h - `fermata rebuild --dry-run`: reads the same topics and says what would come back. It counts, it does not
 * judge: which of the decisions would count is not known before they are judged in their order.
 */
#ifndef FERMATA_WORKER_SURVEY_H
#define FERMATA_WORKER_SURVEY_H

#include "config/config.h"
#include "worker/rebuild.h"

struct survey_topic {
	int64_t records;
	int64_t distinct;      /* ids */
	int64_t doubled;       /* the same again: nothing would happen */
	int64_t conflicting;   /* other bytes under an id that is there: dead letters */
	int64_t unreadable;    /* dead letters; of resumes: foreign records, passed over */
	int64_t letters_found; /* of the unreadable ones, how many have their letter */
};

struct survey {
	struct survey_topic topics[REBUILD_PHASES];
	int64_t verdicts[VERDICT_CANCELLED + 1]; /* of the resumes */
	int64_t kinds[DECISION_EXPIRE + 1];      /* of the decisions */
	int64_t resumed;                         /* checkpoints that have a resume, and come back RESUMED */
	int64_t bare;                            /* of those: without their suspend, which is gone */
	int64_t superseded;           /* without a resume, and a later suspend of their gate is there */
	int64_t undecided;            /* without a resume and without a decision: PENDING */
	int64_t decisions;            /* without a resume, with decisions: these are judged */
	int64_t early;                /* with decisions and without a suspend */
	struct rebuild_place *places; /* partitions whose beginning is gone */
	size_t places_len;
	struct arena *arena; /* of the places */
};

/* Reads all of it; about 100 bytes of memory a record that is read. stop as in struct scan. RETRY ERR_STALE when it was
 * stopped. FATAL ERR_USAGE: a topic is not there. survey_done whatever is returned. */
FM_MUSTCHECK enum fate survey_run(const struct config *config, const struct rebuild_options *options,
                                  bool (*stop)(void *context), void *context, struct survey *ret_survey,
                                  struct error *error);
void survey_done(struct survey *survey);

#endif
