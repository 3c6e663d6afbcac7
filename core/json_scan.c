/*
 * json_scan.c - the grammar of RFC 8259 without recursion: hostile nesting costs a bit a level, and no
 * stack. The bit says what was opened: 1 an object, 0 an array.
 */
#include "core/json_scan.h"

#include <string.h>

struct scan {
	const uint8_t *at;
	const uint8_t *end;
	size_t depth;
	uint8_t opened[(JSON_SCAN_DEPTH_MAX + 7) / 8];
};

/* What comes after a value: another value, nothing more, or a fault. */
enum follow { FOLLOW_VALUE, FOLLOW_END, FOLLOW_FAULT };

static void skip_space(struct scan *scan)
{
	while (scan->at < scan->end &&
	       (*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\n' || *scan->at == '\r'))
		scan->at++;
}

/* Takes the next byte when it is this one. */
static bool take(struct scan *scan, uint8_t byte)
{
	if (scan->at == scan->end || *scan->at != byte)
		return false;
	scan->at++;
	return true;
}

static bool is_digit(uint8_t c)
{
	return c >= '0' && c <= '9';
}

static bool is_hex_digit(uint8_t c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* What stands after a backslash. */
static bool scan_escape(struct scan *scan)
{
	if (scan->at == scan->end)
		return false;
	uint8_t c = *scan->at++;
	if (c != 'u')
		return c != 0 && strchr("\"\\/bfnrt", c) != NULL;
	for (int i = 0; i < 4; i++, scan->at++)
		if (scan->at == scan->end || !is_hex_digit(*scan->at))
			return false;
	return true;
}

static bool scan_string(struct scan *scan)
{
	if (!take(scan, '"'))
		return false;
	while (scan->at < scan->end) {
		uint8_t c = *scan->at++;
		if (c == '"')
			return true;
		if (c < 0x20 || (c == '\\' && !scan_escape(scan)))
			return false;
	}
	return false;
}

/* At least one digit. */
static bool scan_digits(struct scan *scan)
{
	if (scan->at == scan->end || !is_digit(*scan->at))
		return false;
	while (scan->at < scan->end && is_digit(*scan->at))
		scan->at++;
	return true;
}

static bool scan_number(struct scan *scan)
{
	take(scan, '-');
	if (!take(scan, '0') && !scan_digits(scan))
		return false;
	if (take(scan, '.') && !scan_digits(scan))
		return false;
	if (take(scan, 'e') || take(scan, 'E')) {
		if (!take(scan, '+'))
			take(scan, '-');
		return scan_digits(scan);
	}
	return true;
}

static bool scan_word(struct scan *scan, const char *word)
{
	size_t len = strlen(word);

	if ((size_t)(scan->end - scan->at) < len || memcmp(scan->at, word, len) != 0)
		return false;
	scan->at += len;
	return true;
}

/* Any value that contains no other. */
static bool scan_scalar(struct scan *scan)
{
	switch (*scan->at) {
	case '"':
		return scan_string(scan);
	case 't':
		return scan_word(scan, "true");
	case 'f':
		return scan_word(scan, "false");
	case 'n':
		return scan_word(scan, "null");
	default:
		return scan_number(scan);
	}
}

static bool in_object(const struct scan *scan)
{
	size_t level = scan->depth - 1;

	return (scan->opened[level / 8] >> (level % 8) & 1) != 0;
}

static bool push(struct scan *scan, bool object)
{
	size_t level = scan->depth;
	uint8_t bit = (uint8_t)(1 << (level % 8));

	if (level == JSON_SCAN_DEPTH_MAX)
		return false;
	scan->opened[level / 8] =
		(uint8_t)(object ? scan->opened[level / 8] | bit : scan->opened[level / 8] & ~bit);
	scan->depth++;
	return true;
}

/* The name of a member and its colon. */
static bool scan_name(struct scan *scan)
{
	skip_space(scan);
	if (!scan_string(scan))
		return false;
	skip_space(scan);
	return take(scan, ':');
}

static bool take_closer(struct scan *scan)
{
	if (!take(scan, in_object(scan) ? '}' : ']'))
		return false;
	scan->depth--;
	return true;
}

/* After a value: closes what ends here, and finds whether another value has to come. */
static enum follow follow_value(struct scan *scan)
{
	for (;;) {
		skip_space(scan);
		if (scan->depth == 0)
			return scan->at == scan->end ? FOLLOW_END : FOLLOW_FAULT;
		if (take_closer(scan))
			continue;
		if (!take(scan, ',') || (in_object(scan) && !scan_name(scan)))
			return FOLLOW_FAULT;
		return FOLLOW_VALUE;
	}
}

/* After a bracket that opened something: it may close at once, else its first value has to come. */
static enum follow follow_opening(struct scan *scan)
{
	skip_space(scan);
	if (take_closer(scan))
		return follow_value(scan);
	if (in_object(scan) && !scan_name(scan))
		return FOLLOW_FAULT;
	return FOLLOW_VALUE;
}

static enum follow scan_value(struct scan *scan)
{
	skip_space(scan);
	if (scan->at == scan->end)
		return FOLLOW_FAULT;
	bool object = *scan->at == '{';
	if (object || *scan->at == '[') {
		scan->at++;
		return push(scan, object) ? follow_opening(scan) : FOLLOW_FAULT;
	}
	return scan_scalar(scan) ? follow_value(scan) : FOLLOW_FAULT;
}

bool json_scan(struct view text)
{
	enum follow follow = FOLLOW_VALUE;

	if (text.len == 0 || !view_is_utf8(text))
		return false;
	struct scan scan = { .at = text.data, .end = text.data + text.len };
	while (follow == FOLLOW_VALUE)
		follow = scan_value(&scan);
	return follow == FOLLOW_END;
}
