/* demo_search.h - is a text anywhere in the files of a directory? */
#ifndef FERMATA_CLI_DEMO_SEARCH_H
#define FERMATA_CLI_DEMO_SEARCH_H

#include "core/memory.h"

#define NEEDLES_MAX 256

struct needle {
	struct view text; /* of the caller */
	size_t found;     /* in how many places */
};

struct search {
	struct needle needles[NEEDLES_MAX];
	size_t len;
	size_t files;
	uint64_t bytes;
};

/* Adds one text; an empty one, and one too many, are passed over. */
void search_add(struct search *search, struct view text);
/* Adds every run of `words` words of the text (what lies between blanks). */
void search_add_runs(struct search *search, struct view text, size_t words);
/* Looks into every file. FATAL with ERR_SYSTEM: something could not be read. Files that vanish meanwhile are
 * passed over. */
FM_MUSTCHECK enum fate search_run(struct search *search, const char *directory, struct error *error);

#endif
