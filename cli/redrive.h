/*
 * redrive.h - sends dead letters back to where they came from. A letter goes at most once (fermata.audit knows which
 * did), and one that keeps coming back is left alone (its header fermata.redrive.count says how often it did).
 *
 *   redrive_choose.c   what is to be done with a letter; pure but for the trial
 *   redrive_send.c     batches: under a lock in the database, produced, acknowledged, recorded
 *   cmd_redrive.c      the command: which letters, and what is said about each
 */
#ifndef FERMATA_CLI_REDRIVE_H
#define FERMATA_CLI_REDRIVE_H

#include "cli/letter_trial.h"
#include "cli/letters.h"
#include "cli/text_set.h"
#include "producer/producer.h"
#include "store/store.h"

/* ---- redrive_choose.c ---- */

struct redrive_rules {
	const char
		*suspends; /* topics.suspends and topics.approvals: what may be sent to without being asked for */
	const char *approvals;
	const char *to; /* --to, or NULL: back to where it came from */
	int64_t max_redrives;
	size_t record_bytes;         /* limits.record_bytes */
	bool again;                  /* what was redriven before is sent once more */
	const struct text_set *done; /* origins of what was redriven before */
};

enum redrive_choice {
	REDRIVE_SEND,
	REDRIVE_LEAVE, /* it must not, or cannot, be sent */
	REDRIVE_DONE,  /* it was redriven before */
};

/* *ret_topic: where to, for REDRIVE_SEND; borrows from the rules or the letter. ret_why: for the others. */
enum redrive_choice redrive_choose(const struct redrive_rules *rules, const struct letter *letter,
                                   struct view *ret_topic, char *ret_why, size_t cap);

/* ---- redrive_send.c ---- */

#define REDRIVE_BATCH_MAX   100
#define REDRIVE_TARGETS_MAX 3 /* suspends, approvals, --to */

/* A letter of the batch. Everything is in the batch's arena. */
struct redrive_item {
	struct letter letter;
	char *origin;
	char *topic;        /* where to */
	int32_t partitions; /* that it has */
	struct header *headers;
	size_t headers_len;
	bool passed_over; /* somebody else has redriven it meanwhile */
	bool acknowledged;
	int32_t partition; /* where it is now */
	int64_t offset;
	struct error why; /* why it was not acknowledged */
};

struct redrive_target {
	char *topic; /* a copy */
	int32_t partitions;
};

struct redrive_sender {
	const struct cli *cli;
	struct store *store;
	struct producer *producer; /* NULL before the first letter */
	struct redrive_target targets[REDRIVE_TARGETS_MAX];
	size_t targets_len;
	struct text_set done; /* what was redriven before, by anybody */
	bool again;
	int64_t seq; /* of the last row in fermata.audit that was read */
	char who[512];
	size_t rate; /* letters a second */
	int64_t next_ms;
	struct arena *arena; /* of the batch */
	struct redrive_item items[REDRIVE_BATCH_MAX];
	size_t len;
	size_t bytes;
};

/* Connects to the database and reads what was redriven before. redrive_close in any case. */
FM_MUSTCHECK enum fate redrive_open(struct redrive_sender *sender, const struct cli *cli,
                                    struct error *error);
/* Is the next letter to wait for a flush? */
bool redrive_is_full(const struct redrive_sender *sender, size_t more_bytes);
/* Copies a letter into the batch. */
FM_MUSTCHECK enum fate redrive_add(struct redrive_sender *sender, const struct letter *letter,
                                   struct view topic, struct error *error);
/*
 * Waits for the rate, sends the batch and records what was acknowledged. Each item then says what became of it; the
 * caller looks at them and calls redrive_forget. RETRY: not all were acknowledged, or what was cannot be recorded:
 * the message says which.
 */
FM_MUSTCHECK enum fate redrive_flush(struct redrive_sender *sender, struct error *error);
void redrive_forget(struct redrive_sender *sender);
void redrive_close(struct redrive_sender *sender);

#endif
