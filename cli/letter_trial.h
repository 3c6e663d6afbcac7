/*
 * letter_trial.h - would a worker that is configured as this command is take the record of a dead letter now? What needs
 * the database (conflict, unclaimed_full, rejected_by_store) cannot be told here.
 */
#ifndef FERMATA_CLI_LETTER_TRIAL_H
#define FERMATA_CLI_LETTER_TRIAL_H

#include "cli/cli.h"
#include "cli/letter.h"

struct letter_trial {
	struct catalog *catalog;
	struct codec *codec;
	struct arena *scratch;
};

enum trial_answer {
	TRIAL_TAKEN,   /* it can be decoded, and every value is allowed */
	TRIAL_REFUSED, /* why: as a dead letter would say it */
	TRIAL_UNTOLD,  /* why: it hangs on what a registry says */
};

struct trial_result {
	enum trial_answer answer;
	struct error why;
	/* Ids out of it where it is taken, else null views. They live until the next trial. */
	struct view checkpoint_id;
	struct view session_id;
	struct view decision_id;
};

/* letter_trial_close in any case. */
FM_MUSTCHECK enum fate letter_trial_open(struct letter_trial *trial, const struct cli *cli,
                                         struct error *error);
/* Decodes it as its stage says, suspend or approval. It must be known. The plaintext is wiped by the next trial. */
void letter_try(struct letter_trial *trial, const struct letter *letter, struct trial_result *ret_result);
void letter_trial_close(struct letter_trial *trial);

#endif
