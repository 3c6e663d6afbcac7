/* doctor.h - what the checks of `fermata doctor` share. */
#ifndef FERMATA_CLI_DOCTOR_H
#define FERMATA_CLI_DOCTOR_H

#include "cli/cli.h"
#include "consumer/reader.h"
#include "store/store_facts.h"

enum finding {
	FINDING_OK,
	FINDING_WARNING, /* it works, and may not as it should */
	FINDING_WRONG,   /* a worker would not start, or wait for ever */
	FINDING_SKIPPED, /* could not be looked at, for something else is wrong */
};

struct doctor {
	struct cli *cli;
	size_t wrong;
	struct arena *arena;             /* of what the database knows */
	bool migrated;                   /* the database can be asked, and its tables are those of this version */
	struct view cluster;             /* that the installation is for; null when that is not known */
	char mark[STORE_MARK_CAP];       /* of the installation; empty when it is not known */
	struct resumes_topic *published; /* with the partitions that each had when it was first published to */
	size_t published_len;
	struct error failed; /* of the output */
};

/* Prints one finding. mend: what to do about it, or NULL. */
void doctor_say(struct doctor *doctor, enum finding finding, const char *check, const char *mend,
                const char *fmt, ...) FM_PRINTF(5, 6);
/* The same, out of an error: what is wrong, and perhaps what to do, is in its message. */
void doctor_say_error(struct doctor *doctor, enum finding finding, const char *check, const char *mend,
                      const struct error *error);

/* The checks, in the order of the calls. Each prints at least one finding, but where it says otherwise. */
void doctor_machine(struct doctor *doctor);
void doctor_configuration(struct doctor *doctor);
void doctor_keyring(struct doctor *doctor);
/* Nothing, when neither schemas.path nor a registry is configured. */
void doctor_schemas(struct doctor *doctor);
void doctor_postgres(struct doctor *doctor);
void doctor_kafka(struct doctor *doctor);
/* A part of doctor_kafka's: what needs both, when all topics are there. */
void doctor_waits(struct doctor *doctor, struct reader *reader, const char *cluster);

#endif
