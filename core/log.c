/*
 * log.c - a line is put together on the stack and leaves in one write(2), so that lines of several
 * threads (and processes, on a pipe: PIPE_BUF) never mix. What comes from outside cannot forge a line or
 * steer a terminal: control characters, line separators and bytes that are not UTF-8 are written as escapes.
 */
#include "core/log.h"

#include "core/clock.h"
#include "core/memory.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_LEN 4096 /* PIPE_BUF on Linux */
#define LINE_RESERVE 256  /* kept free for what follows the message */

static _Atomic int wanted_level = LOG_LEVEL_INFO;
static _Atomic int wanted_format = LOG_FORMAT_TEXT;

static const char *const level_names[] = {
	[LOG_LEVEL_ERROR] = "error",
	[LOG_LEVEL_WARN] = "warn",
	[LOG_LEVEL_INFO] = "info",
	[LOG_LEVEL_DEBUG] = "debug",
};

struct line {
	enum log_format format;
	size_t len;
	char text[LINE_MAX_LEN];
};

void log_setup(enum log_level level, enum log_format format)
{
	atomic_store(&wanted_level, (int)level);
	atomic_store(&wanted_format, (int)format);
}

int log_wants(enum log_level level)
{
	return (int)level <= atomic_load_explicit(&wanted_level, memory_order_relaxed);
}

/* Appends our own text, which needs no escapes; cut at limit. */
static void put(struct line *line, const char *text, size_t limit)
{
	size_t len = strlen(text);

	if (line->len + len > limit)
		len = limit > line->len ? limit - line->len : 0;
	memcpy(line->text + line->len, text, len);
	line->len += len;
}

/* U+0080 to U+009F (a terminal may obey them), U+2028 and U+2029 (some readers break lines there). */
static bool is_hidden_break(const uint8_t *c, size_t step)
{
	return (step == 2 && c[0] == 0xC2 && c[1] < 0xA0) ||
	       (step == 3 && c[0] == 0xE2 && c[1] == 0x80 && (c[2] == 0xA8 || c[2] == 0xA9));
}

/* The letter that stands for the character after a backslash, or 0. */
static char short_escape(enum log_format format, uint8_t c)
{
	static const char from[] = "\n\r\t\"\\";
	static const char to[] = "nrt\"\\";
	size_t known = format == LOG_FORMAT_JSON ? 5 : 3; /* quotes and backslashes mean nothing in text */

	for (size_t i = 0; i < known; i++)
		if ((uint8_t)from[i] == c)
			return to[i];
	return 0;
}

/* Writes the escape of the character of step bytes at c (step 0: of one byte that is not UTF-8). */
static void escape(enum log_format format, const uint8_t *c, size_t step, char *ret_escape, size_t cap)
{
	char letter = step == 1 ? short_escape(format, *c) : 0;
	unsigned number = *c;

	if (step == 2)
		number = c[1]; /* U+0080 to U+00BF: the second byte is the number */
	else if (step == 3)
		number = 0x2000u + (c[2] & 0x3Fu); /* U+2000 to U+203F */
	else if (step == 0 && format == LOG_FORMAT_JSON)
		number = 0xFFFD;
	if (letter != 0)
		snprintf(ret_escape, cap, "\\%c", letter);
	else if (step <= 1 && format == LOG_FORMAT_TEXT)
		snprintf(ret_escape, cap, "\\x%02x", number);
	else
		snprintf(ret_escape, cap, "\\u%04x", number);
}

static bool is_plain(enum log_format format, const uint8_t *c, size_t step)
{
	if (step == 0)
		return false;
	if (step == 1)
		return *c >= 0x20 && *c != 0x7F && short_escape(format, *c) == 0;
	return !is_hidden_break(c, step);
}

/* Appends text from anywhere, whole characters only; what does not fit is left out for "...". */
static void put_escaped(struct line *line, const char *text, size_t limit)
{
	struct view rest = view_of(text);

	while (rest.len > 0) {
		char escaped[8];
		const char *piece = (const char *)rest.data;
		size_t step = view_utf8_step(rest);
		size_t len = step;
		if (!is_plain(line->format, rest.data, step)) {
			escape(line->format, rest.data, step, escaped, sizeof(escaped));
			piece = escaped;
			len = strlen(escaped);
		}
		if (line->len + len + 3 > limit) {
			put(line, "...", limit);
			return;
		}
		memcpy(line->text + line->len, piece, len);
		line->len += len;
		size_t eaten = step > 0 ? step : 1;
		rest = (struct view){ rest.data + eaten, rest.len - eaten };
	}
}

/* A member of the JSON form, with the comma that separates it from the one before. */
static void put_member(struct line *line, const char *name, const char *value, size_t limit)
{
	put(line, line->len == 0 ? "{\"" : ",\"", LINE_MAX_LEN);
	put(line, name, LINE_MAX_LEN);
	put(line, "\":\"", LINE_MAX_LEN);
	put_escaped(line, value, limit);
	put(line, "\"", LINE_MAX_LEN);
}

static void begin(struct line *line, enum log_level level, const char *room, const char *message)
{
	char time[40];
	size_t limit = LINE_MAX_LEN - LINE_RESERVE;

	line->format = (enum log_format)atomic_load_explicit(&wanted_format, memory_order_relaxed);
	line->len = 0;
	clock_format(clock_real_us(), time, sizeof(time));
	if (strlen(time) == 27)
		memcpy(time + 23, "Z", 2); /* milliseconds are enough for people */
	if (line->format == LOG_FORMAT_JSON) {
		put_member(line, "time", time, limit);
		put_member(line, "level", level_names[level], limit);
		put_member(line, "room", room, limit);
		put_member(line, "message", message, limit);
		return;
	}
	put(line, time, limit);
	put(line, " ", limit);
	put(line, level_names[level], limit);
	put(line, " ", limit);
	put_escaped(line, room, limit);
	put(line, ": ", limit);
	put_escaped(line, message, limit);
}

/* errno is the caller's: a line about a failed call must not change what is said next. */
static void finish(struct line *line)
{
	int saved = errno;
	size_t sent = 0;

	put(line, line->format == LOG_FORMAT_JSON ? "}\n" : "\n", LINE_MAX_LEN);
	while (sent < line->len) {
		ssize_t n = write(STDERR_FILENO, line->text + sent, line->len - sent);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break; /* there is nobody left to tell */
		sent += (size_t)n;
	}
	errno = saved;
}

void log_write(enum log_level level, const char *room, const char *fmt, ...)
{
	char message[LINE_MAX_LEN];
	struct line line;
	va_list args;

	if (!log_wants(level))
		return;
	va_start(args, fmt);
	vsnprintf(message, sizeof(message), fmt, args);
	va_end(args);
	begin(&line, level, room, message);
	finish(&line);
}

void log_error(enum log_level level, const char *room, const struct error *error)
{
	struct line line;
	const char *fate = error_fate_name(error->fate);
	const char *code = error_code_name(error->code);
	size_t limit = LINE_MAX_LEN - LINE_RESERVE / 4;

	if (!log_wants(level))
		return;
	begin(&line, level, room, error->message);
	if (line.format == LOG_FORMAT_JSON) {
		put_member(&line, "fate", fate, limit);
		put_member(&line, "code", code, limit);
		if (error->native[0] != '\0')
			put_member(&line, "native", error->native, limit);
	} else {
		put(&line, " (", limit);
		put(&line, fate, limit);
		put(&line, ", ", limit);
		put(&line, code, limit);
		put(&line, error->native[0] != '\0' ? ", " : "", limit);
		put_escaped(&line, error->native, limit);
		put(&line, ")", limit);
	}
	finish(&line);
}
