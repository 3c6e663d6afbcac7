#include "cli/screen.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#define US_PER_S 1000000

static int forced = -1;
static bool lost; /* something was to be written and did not fit into its buffer */

bool screen_colours(void)
{
	const char *none = getenv("NO_COLOR"), *term = getenv("TERM");

	if (forced >= 0)
		return forced == 1;
	if (none != NULL && *none != '\0')
		return false;
	return isatty(STDOUT_FILENO) && term != NULL && *term != '\0' && strcmp(term, "dumb") != 0;
}

void screen_force_colours(int force)
{
	forced = force;
}

size_t screen_width(void)
{
	struct winsize size;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
		return 0;
	return size.ws_col;
}

const char *colour_on(enum colour colour)
{
	static const char *const sequences[] = { "",         "\x1b[1m",  "\x1b[2m", "\x1b[31m",
		                                     "\x1b[32m", "\x1b[33m", "\x1b[34m" };

	return screen_colours() ? sequences[colour] : "";
}

const char *colour_off(enum colour colour)
{
	return colour != COLOUR_NONE && screen_colours() ? "\x1b[0m" : "";
}

/* ---- text from outside ---- */

/* A well-formed character of `step` bytes. */
static uint32_t code_point(const uint8_t *at, size_t step)
{
	static const uint8_t first_mask[] = { 0, 0x7f, 0x1f, 0x0f, 0x07 };
	uint32_t code = at[0] & first_mask[step];

	for (size_t i = 1; i < step; i++)
		code = code << 6 | (at[i] & 0x3f);
	return code;
}

/* Moves the cursor, hides, or turns what follows around. */
static bool is_harmful(uint32_t code)
{
	return code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0x200e || code == 0x200f ||
	       code == 0x061c || (code >= 0x2028 && code <= 0x202e) || (code >= 0x2066 && code <= 0x2069) ||
	       code == 0xfeff || (code >= 0xe0000 && code < 0xe0080);
}

static void put_escape(struct buffer *out, uint32_t code)
{
	if (code == '\t')
		buffer_append_text(out, "\\t");
	else if (code == '\r')
		buffer_append_text(out, "\\r");
	else if (code < 0x100)
		buffer_printf(out, "\\x%02x", (unsigned)code);
	else
		buffer_printf(out, "\\u{%x}", (unsigned)code);
}

/* newline: what a line feed becomes. */
static void put_cleaned(struct buffer *out, struct view text, const char *newline)
{
	while (text.len > 0) {
		size_t step = view_utf8_step(text);
		uint32_t code = step > 0 ? code_point(text.data, step) : text.data[0];
		if (code == '\n')
			buffer_append_text(out, newline);
		else if (step == 0 || is_harmful(code))
			put_escape(out, code);
		else
			buffer_append(out, text.data, step);
		text.data += step > 0 ? step : 1;
		text.len -= step > 0 ? step : 1;
	}
}

void put_clean(struct buffer *out, struct view text)
{
	put_cleaned(out, text, " ");
}

void put_clean_lines(struct buffer *out, struct view text, size_t indent)
{
	char newline[64];

	if (indent > sizeof(newline) - 2)
		indent = sizeof(newline) - 2;
	newline[0] = '\n';
	memset(newline + 1, ' ', indent);
	newline[1 + indent] = '\0';
	while (text.len > 0 && text.data[text.len - 1] == '\n')
		text.len--;
	put_cleaned(out, text, newline);
}

/* The blocks that terminals show two columns wide (Unicode East Asian Width W and F, the large ones), and
 * combining marks, which take none. */
static size_t code_columns(uint32_t code)
{
	static const uint32_t wide[][2] = {
		{ 0x1100, 0x115f },   { 0x2e80, 0x303e },   { 0x3041, 0xa4cf },   { 0xac00, 0xd7a3 },
		{ 0xf900, 0xfaff },   { 0xfe30, 0xfe6f },   { 0xff00, 0xff60 },   { 0xffe0, 0xffe6 },
		{ 0x1f300, 0x1f64f }, { 0x1f680, 0x1f6ff }, { 0x1f900, 0x1f9ff }, { 0x20000, 0x3fffd },
	};

	if ((code >= 0x300 && code <= 0x36f) || (code >= 0x200b && code <= 0x200d) ||
	    (code >= 0xfe00 && code <= 0xfe0f))
		return 0;
	for (size_t i = 0; i < sizeof(wide) / sizeof(wide[0]); i++)
		if (code >= wide[i][0] && code <= wide[i][1])
			return 2;
	return 1;
}

/* Columns of the bytes until `limit` columns are reached; *ret_len: those bytes. */
static size_t measure(struct view text, size_t limit, size_t *ret_len)
{
	size_t columns = 0, at = 0;

	while (at < text.len) {
		struct view rest = { text.data + at, text.len - at };
		size_t step = view_utf8_step(rest);
		size_t more = step > 0 ? code_columns(code_point(rest.data, step)) : 1;
		if (columns + more > limit)
			break;
		columns += more;
		at += step > 0 ? step : 1;
	}
	*ret_len = at;
	return columns;
}

size_t text_columns(struct view text)
{
	size_t len;

	return measure(text, SIZE_MAX, &len);
}

size_t text_cut(struct view text, size_t columns)
{
	size_t len;

	(void)measure(text, columns, &len);
	return len;
}

/* ---- times ---- */

char *format_ago(int64_t at, int64_t now, char *text, size_t cap)
{
	char span[32];
	int64_t us;

	if (at == TIME_NONE) {
		snprintf(text, cap, "-");
		return text;
	}
	/* No time of the wire may overflow. */
	if (__builtin_sub_overflow(now, at, &us))
		us = at < 0 ? INT64_MAX : -INT64_MAX;
	if (us < US_PER_S && us > -US_PER_S)
		snprintf(text, cap, "now");
	else if (us > 0)
		snprintf(text, cap, "%s ago", clock_span(us, span, sizeof(span)));
	else
		snprintf(text, cap, "in %s", clock_span(-us, span, sizeof(span)));
	return text;
}

char *format_clock(int64_t at, char *text, size_t cap)
{
	time_t seconds = (time_t)(at / US_PER_S - (at % US_PER_S < 0));
	struct tm tm;

	if (at == TIME_NONE)
		snprintf(text, cap, "-");
	else if (localtime_r(&seconds, &tm) == NULL || tm.tm_year < -1900 || tm.tm_year > 8099 ||
	         strftime(text, cap, "%Y-%m-%d %H:%M:%S %Z", &tm) == 0)
		snprintf(text, cap, "%" PRId64 " us", at);
	return text;
}

char *format_when(int64_t at, int64_t now, char *text, size_t cap)
{
	char clock[48], ago[48];

	if (at == TIME_NONE)
		snprintf(text, cap, "-");
	else
		snprintf(text, cap, "%s (%s)", format_clock(at, clock, sizeof(clock)),
		         format_ago(at, now, ago, sizeof(ago)));
	return text;
}

/* ---- colours of words ---- */

enum colour gate_state_colour(enum gate_state state)
{
	static const enum colour colours[GATE_STATE_COUNT] = {
		[GATE_PENDING] = COLOUR_YELLOW, [GATE_DECIDED] = COLOUR_BLUE,    [GATE_RESUMED] = COLOUR_GREEN,
		[GATE_SUPERSEDED] = COLOUR_DIM, [GATE_QUARANTINED] = COLOUR_RED, [GATE_IN_DOUBT] = COLOUR_RED,
		[GATE_UNCLAIMED] = COLOUR_DIM,
	};

	return (unsigned)state < GATE_STATE_COUNT ? colours[state] : COLOUR_NONE;
}

enum colour verdict_colour(enum verdict verdict)
{
	return verdict == VERDICT_APPROVED   ? COLOUR_GREEN
	       : verdict == VERDICT_REJECTED ? COLOUR_RED
	                                     : COLOUR_YELLOW;
}

enum colour risk_colour(enum risk risk)
{
	return risk >= RISK_HIGH ? COLOUR_RED : risk == RISK_MEDIUM ? COLOUR_YELLOW : COLOUR_NONE;
}

bool screen_whole(void)
{
	return !lost;
}

/* A part of what was to be said would be taken for all of it. */
static bool give_up(struct buffer *out)
{
	if (!buffer_failed(out))
		return false;
	lost = true;
	buffer_reset(out);
	return true;
}

void screen_write(struct buffer *out)
{
	if (give_up(out))
		return;
	if (out->len > 0)
		(void)fwrite(out->data, 1, out->len, stdout);
	buffer_reset(out);
}

/* Bytes of a character that JSON allows as it is and a terminal, or a reader of lines, may not take well. */
static size_t troublesome(const uint8_t *at, size_t len)
{
	if (at[0] == 0x7f)
		return 1;
	if (len >= 2 && at[0] == 0xc2 && at[1] >= 0x80 && at[1] < 0xa0)
		return 2;
	if (len >= 3 && at[0] == 0xe2 && at[1] == 0x80 && (at[2] == 0xa8 || at[2] == 0xa9))
		return 3;
	return 0;
}

void screen_write_json(struct buffer *out)
{
	size_t from = 0;

	if (give_up(out))
		return;
	for (size_t at = 0; at < out->len;) {
		size_t step = troublesome(out->data + at, out->len - at);
		if (step == 0) {
			at++;
			continue;
		}
		(void)fwrite(out->data + from, 1, at - from, stdout);
		printf("\\u%04x", (unsigned)code_point(out->data + at, step));
		at += step;
		from = at;
	}
	if (out->len > from)
		(void)fwrite(out->data + from, 1, out->len - from, stdout);
	(void)putchar('\n');
	buffer_reset(out);
}
