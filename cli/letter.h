/*
 * letter.h - a record of the dead-letters topic: what it says about the record that it was, and what may be done with
 * it. Pure: nothing here asks anybody. Whoever may write to the topic may have written it, so every header is checked.
 */
#ifndef FERMATA_CLI_LETTER_H
#define FERMATA_CLI_LETTER_H

#include "core/kafka.h"

#define LETTER_REDRIVES_HEADER "fermata.redrive.count"

struct letter {
	struct coordinates at; /* where the letter stands */
	struct view key;
	struct view value;
	const struct header *headers; /* all, in their order */
	size_t headers_len;

	/* What fermata.error.* says. known: all of it is there and well-formed; else these are null views and -1. */
	bool known;
	struct view code;
	struct view reason;
	struct view stage; /* "suspend" or "approval" */
	struct view topic;
	int32_t partition;
	int64_t offset;
	int64_t timestamp_ms; /* of the original record; -1: it had none */

	int64_t
		redrives; /* how often it was redriven before it came back as this letter; -1: the header is no number */
};

/* The last header of a name is the worker's own: an earlier one was there when the record came. Borrows. */
void letter_read(const struct coordinates *at, struct view key, struct view value,
                 const struct header *headers, size_t headers_len, struct letter *ret_letter);

#define LETTER_ORIGIN_MAX 320 /* with the NUL */

/* "TOPIC:PARTITION:OFFSET@TIMESTAMP" of the record that it was: two letters with one origin are doubles. (A topic
 * that was made anew counts from 0 again: the timestamp tells them apart.) Only of one that is known. Returns text. */
char *letter_origin(const struct letter *letter, char text[LETTER_ORIGIN_MAX]);

/* Was its value left out, because the dead-letters topic did not take it? */
bool letter_is_emptied(const struct letter *letter);

/* What would have to change before a record with this code is taken; a text of this program. For a code that
 * is not known: that the reason says more. */
const char *letter_change_first(struct view code);
/* Is this one of the contract's codes? *ret_all lists them, for a message. */
bool letter_code_is_known(const char *code, const char **ret_all);

/* In words, how the value says in which schema it is written: "null", "single object, fingerprint 0123456789abcdef".
 * cap >= 96. Returns text. */
char *letter_framing(struct view value, char *text, size_t cap);

/* The headers that a redriven record gets: its own, without fermata.error.*, and with the count raised. RETRY: no
 * memory in the arena. */
FM_MUSTCHECK enum fate letter_headers_back(const struct letter *letter, struct arena *arena,
                                           struct header **ret_headers, size_t *ret_len, struct error *error);

/* "3:1042" is partition 3, offset 1042 of the dead-letters topic. */
struct letter_place {
	int32_t partition;
	int64_t offset;
};

/* FATAL ERR_USAGE. */
FM_MUSTCHECK enum fate letter_place_parse(const char *text, struct letter_place *ret_place,
                                          struct error *error);

#endif
