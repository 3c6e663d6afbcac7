/* lines.h - lines from a file descriptor, without waiting longer than asked to. */
#ifndef FERMATA_CLI_LINES_H
#define FERMATA_CLI_LINES_H

#include "core/memory.h"

enum lines_event {
	LINES_LINE,     /* *ret_line is one, without its newline; valid until the next call */
	LINES_NOTHING,  /* the time is over */
	LINES_TOO_LONG, /* a line above the ceiling was passed over */
	LINES_END,
	LINES_FAILED, /* errno says why */
};

struct lines {
	int fd;
	size_t ceiling;
	struct buffer held; /* read and not yet given */
	size_t given;       /* bytes of held that were given */
	size_t searched;    /* bytes of held without a newline */
	size_t number;      /* of the line given last, from 1 */
	bool skipping;
	bool ended;
};

/* ceiling: the longest line. The descriptor stays the caller's. */
void lines_init(struct lines *lines, int fd, size_t ceiling);
/* timeout_ms: -1 for as long as it takes. */
enum lines_event lines_next(struct lines *lines, int timeout_ms, struct view *ret_line);
void lines_done(struct lines *lines);

#endif
