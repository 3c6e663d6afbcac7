#include "cli/lines.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#define READ_BYTES ((size_t)64 * 1024)

void lines_init(struct lines *lines, int fd, size_t ceiling)
{
	*lines = (struct lines){ .fd = fd, .ceiling = ceiling };
	buffer_init(&lines->held, ceiling + READ_BYTES + 1);
}

/* Moves what was not given to the front. */
static void compact(struct lines *lines)
{
	size_t left = lines->held.len - lines->given;

	if (lines->given == 0)
		return;
	memmove(lines->held.data, lines->held.data + lines->given, left);
	lines->held.len = left;
	lines->given = 0;
}

/* A whole line of what is held. */
static bool take_line(struct lines *lines, struct view *ret_line)
{
	size_t from = lines->given + lines->searched;
	const uint8_t *end =
		lines->held.len > from ? memchr(lines->held.data + from, '\n', lines->held.len - from) : NULL;

	if (end == NULL) {
		lines->searched = lines->held.len - lines->given;
		return false;
	}
	const uint8_t *start = lines->held.data + lines->given;
	*ret_line = (struct view){ start, (size_t)(end - start) };
	lines->given += ret_line->len + 1;
	lines->searched = 0;
	lines->number++;
	return true;
}

/* The last line needs no newline. */
static bool take_rest(struct lines *lines, struct view *ret_line)
{
	size_t left = lines->held.len - lines->given;

	if (left == 0)
		return false;
	*ret_line = (struct view){ lines->held.data + lines->given, left };
	lines->given = lines->held.len;
	lines->searched = 0;
	lines->number++;
	return true;
}

static enum lines_event judge_line(struct lines *lines, const struct view *line)
{
	bool long_one = lines->skipping || line->len > lines->ceiling;

	lines->skipping = false;
	return long_one ? LINES_TOO_LONG : LINES_LINE;
}

/* Drops what is held of a line that is too long already. */
static void drop_long(struct lines *lines)
{
	if (lines->held.len - lines->given <= lines->ceiling)
		return;
	lines->skipping = true;
	lines->given = lines->held.len;
	lines->searched = 0;
}

/* Reads more. LINES_LINE: there may be a line now. */
static enum lines_event fill(struct lines *lines, int timeout_ms)
{
	struct pollfd wait = { lines->fd, POLLIN, 0 };
	int ready = poll(&wait, 1, timeout_ms);

	if (ready == 0 || (ready < 0 && errno == EINTR))
		return LINES_NOTHING;
	compact(lines);
	drop_long(lines);
	compact(lines);
	uint8_t *room = buffer_reserve(&lines->held, READ_BYTES);
	if (ready < 0 || room == NULL)
		return LINES_FAILED;
	ssize_t count = read(lines->fd, room, READ_BYTES);
	if (count < 0)
		return errno == EINTR || errno == EAGAIN ? LINES_NOTHING : LINES_FAILED;
	lines->held.len += (size_t)count;
	lines->ended = count == 0;
	return LINES_LINE;
}

enum lines_event lines_next(struct lines *lines, int timeout_ms, struct view *ret_line)
{
	while (!take_line(lines, ret_line)) {
		if (lines->ended) {
			bool rest = take_rest(lines, ret_line);
			if (!rest && !lines->skipping)
				return LINES_END;
			if (!rest)
				lines->number++;
			return judge_line(lines, rest ? ret_line : &(struct view){ NULL, 0 });
		}
		enum lines_event event = fill(lines, timeout_ms);
		if (event != LINES_LINE)
			return event;
	}
	return judge_line(lines, ret_line);
}

void lines_done(struct lines *lines)
{
	buffer_done(&lines->held);
}
