/* letters.h - reads the dead-letters topic: all that a filter lets through, or single ones by their places. */
#ifndef FERMATA_CLI_LETTERS_H
#define FERMATA_CLI_LETTERS_H

#include "cli/cli.h"
#include "cli/letter.h"

struct letter_filter {
	struct view code;  /* null: any */
	struct view topic; /* that the record came from; null: any */
	int64_t since;     /* us, by the time of the letter; 0: from the beginning */
	int64_t until;     /* INT64_MAX: no end */
};

/* --code, --topic, --since, --until. FATAL ERR_USAGE. Borrows from the command line. */
FM_MUSTCHECK enum fate letter_filter_take(const struct cli *cli, struct letter_filter *ret_filter,
                                          struct error *error);
/* What is not known passes only where neither code nor topic is wished for. */
bool letter_filter_passes(const struct letter_filter *filter, const struct letter *letter);

/* One letter; it and all that it points to are gone when this returns. False: enough. */
typedef bool letters_each(void *context, const struct letter *letter);

struct letters_walk {
	const struct cli *cli;
	struct letter_filter filter;
	bool doubles; /* second letters of one record are given too */
	letters_each *each;
	void *context;
};

/* From the beginning, or filter.since, to the end that stands now; read_committed. A letter that is not known is
 * never a double. */
FM_MUSTCHECK enum fate letters_walk(const struct letters_walk *walk, struct error *error);

/* The letters at these places, in their order, doubles too. REJECT ERR_NO: there is none at one of them (the message
 * names it and says why); each may have been called for others before. */
FM_MUSTCHECK enum fate letters_at(const struct cli *cli, const struct letter_place *places, size_t len,
                                  letters_each *each, void *context, struct error *error);

#endif
