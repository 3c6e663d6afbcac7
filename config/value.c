/* value.c - types, units and bounds. */
#include "config/value.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_continuation(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static void show(char *to, const char *text, size_t len, bool utf8)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		bool fit = c >= 0x20 && c != 0x7f && (c < 0x80 || utf8);
		to[i] = fit ? text[i] : '?';
	}
	to[len] = '\0';
}

struct shown value_shown(const char *text)
{
	struct shown shown;
	bool utf8 = view_is_utf8(view_of(text));
	size_t len = strlen(text), room = sizeof(shown.text) - 1;
	if (len <= room) {
		show(shown.text, text, len, utf8);
		return shown;
	}
	room -= 3;
	while (utf8 && room > 0 && is_continuation(text[room]))
		room--;
	show(shown.text, text, room, utf8);
	memcpy(shown.text + room, "...", 4);
	return shown;
}

struct shown origin_shown(const char *text)
{
	struct shown shown;
	bool utf8 = view_is_utf8(view_of(text));
	size_t len = strlen(text), room = sizeof(shown.text) - 1;
	if (len <= room) {
		show(shown.text, text, len, utf8);
		return shown;
	}
	const char *tail = text + (len - (room - 3));
	while (utf8 && is_continuation(*tail))
		tail++;
	memcpy(shown.text, "...", 3);
	show(shown.text + 3, tail, strlen(tail), utf8);
	return shown;
}

enum fate config_no_memory(struct error *error)
{
	return error_set(error, FATE_FATAL, ERR_MEMORY, "out of memory while reading the configuration");
}

/* "KEY (ORIGIN): " and what is wrong; the value is only shown where the key is no secret. */
static enum fate wrong(const struct param_info *info, const struct given_text *given, struct error *error,
                       const char *what)
{
	struct shown origin = origin_shown(given->origin);
	struct shown value = value_shown(given->text);
	if (info->secrecy != SECRECY_OPEN)
		return error_set(error, FATE_FATAL, ERR_USAGE, "%s (%s): this value %s", given->key, origin.text,
		                 what);
	return error_set(error, FATE_FATAL, ERR_USAGE, "%s (%s): \"%s\" %s", given->key, origin.text, value.text,
	                 what);
}

/* --- numbers --- */

struct unit {
	const char *name;
	int64_t factor;
};

static const struct unit count_units[] = { { "", 1 }, { NULL, 0 } };
static const struct unit byte_units[] = {
	{ "", 1 }, { "B", 1 }, { "KiB", 1024 }, { "MiB", 1048576 }, { "GiB", 1073741824 }, { NULL, 0 }
};
static const struct unit time_units[] = { { "ms", 1 },      { "s", 1000 },     { "m", 60000 },
	                                      { "h", 3600000 }, { "d", 86400000 }, { NULL, 0 } };

static const struct unit *units_of(const struct param_info *info)
{
	if (strcmp(info->unit, "bytes") == 0)
		return byte_units;
	return strcmp(info->unit, "ms") == 0 ? time_units : count_units;
}

static const char *not_a_number(const struct param_info *info)
{
	const struct unit *units = units_of(info);
	if (units == byte_units)
		return "is not a size: a whole number and B, KiB, MiB or GiB";
	if (units == time_units)
		return "is not a duration: a whole number and ms, s, m, h or d";
	return "is not a whole number";
}

/* Does the text after the digits name one of the units? A bare 0 needs none. */
static bool unit_find(const struct unit *unit, const char *name, int64_t number, int64_t *ret_factor)
{
	for (; unit->name != NULL; unit++) {
		bool same = unit->factor >= 1024 && strchr(unit->name, 'i') != NULL
		                ? strcasecmp(unit->name, name) == 0
		                : strcmp(unit->name, name) == 0;
		if (same) {
			*ret_factor = unit->factor;
			return true;
		}
	}
	*ret_factor = 1;
	return number == 0 && name[0] == '\0';
}

static enum fate parse_number(const struct param_info *info, const struct given_text *given,
                              struct value *ret_value, struct error *error)
{
	const char *digits = given->text;
	char *end;
	errno = 0;
	long long number = strtoll(digits, &end, 10);
	bool plain = isdigit((unsigned char)digits[0]) || (digits[0] == '-' && isdigit((unsigned char)digits[1]));
	if (!plain)
		return wrong(info, given, error, not_a_number(info));
	while (*end == ' ' || *end == '\t')
		end++;
	int64_t factor, scaled;
	if (!unit_find(units_of(info), end, number, &factor))
		return wrong(info, given, error, not_a_number(info));
	bool too_far = errno == ERANGE || __builtin_mul_overflow((int64_t)number, factor, &scaled);
	if (too_far || scaled < info->min || scaled > info->max) {
		char what[96], low[32], high[32];
		snprintf(what, sizeof(what), "is out of bounds: %s to %s are allowed",
		         param_format_number(info, info->min, low, sizeof(low)),
		         param_format_number(info, info->max, high, sizeof(high)));
		return wrong(info, given, error, what);
	}
	ret_value->number = scaled;
	return FATE_OK;
}

/* --- flags and choices --- */

static enum fate parse_flag(const struct param_info *info, const struct given_text *given,
                            struct value *ret_value, struct error *error)
{
	static const char *const words[] = { "false", "true", "no", "yes", "off", "on" };
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasecmp(given->text, words[i]) == 0) {
			ret_value->number = (int64_t)(i % 2);
			return FATE_OK;
		}
	}
	return wrong(info, given, error, "is not a flag: true, yes, on, false, no or off");
}

static enum fate parse_choice(const struct param_info *info, const struct given_text *given,
                              struct value *ret_value, struct error *error)
{
	size_t len = strlen(given->text);
	int64_t index = 0;
	for (const char *at = info->unit; at != NULL; index++) {
		size_t word = strcspn(at, "|");
		if (word == len && strncmp(at, given->text, len) == 0) {
			ret_value->number = index;
			return FATE_OK;
		}
		at = at[word] == '|' ? at + word + 1 : NULL;
	}
	char what[96];
	snprintf(what, sizeof(what), "is not one of %s", info->unit);
	return wrong(info, given, error, what);
}

/* --- texts --- */

/* Kafka's own rule for names of topics; for groups it is ours, because they become part of ids. */
static bool is_name(const char *text)
{
	static const char legal[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	return text[strspn(text, legal)] == '\0' && strcmp(text, ".") != 0 && strcmp(text, "..") != 0;
}

static bool is_port(const char *text)
{
	size_t len = strspn(text, "0123456789");
	return len >= 1 && len <= 5 && text[len] == '\0' && strtol(text, NULL, 10) <= 65535;
}

/* HOST:PORT; an IPv6 address stands in brackets. */
static bool is_address(const char *text)
{
	const char *colon = strrchr(text, ':');
	if (colon == NULL || colon == text || !is_port(colon + 1))
		return false;
	size_t host = (size_t)(colon - text);
	if (text[0] == '[')
		return host > 2 && text[host - 1] == ']' && memchr(text + 1, ']', host - 2) == NULL;
	return memchr(text, ':', host) == NULL && text[strcspn(text, " \t/")] == '\0';
}

static bool is_url(const char *text)
{
	bool http = strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0;
	return http && text[strcspn(text, " \t")] == '\0' && strchr(text, ':')[3] != '\0';
}

static bool is_clean(const char *text)
{
	for (; *text != '\0'; text++) {
		unsigned char c = (unsigned char)*text;
		if ((c < 0x20 && c != '\t') || c == 0x7f)
			return false;
	}
	return true;
}

/* What is wrong with a text of that form, or NULL. */
static const char *form_fault(const char *form, const char *text)
{
	if (strcmp(form, "topic") == 0)
		return is_name(text) ? NULL : "is not a topic's name: letters, digits, '.', '_' and '-'";
	if (strcmp(form, "group") == 0)
		return is_name(text) ? NULL : "is not a group's name: letters, digits, '.', '_' and '-'";
	if (strcmp(form, "address") == 0)
		return is_address(text) ? NULL : "is not HOST:PORT, with an IPv6 address in brackets";
	if (strcmp(form, "url") == 0)
		return is_url(text) ? NULL : "is not a URL that begins with http:// or https://";
	return NULL;
}

static enum fate parse_text(const struct param_info *info, const struct given_text *given,
                            struct value *ret_value, struct error *error)
{
	int64_t len = (int64_t)strlen(given->text);
	char what[96];
	if (len < info->min)
		return wrong(info, given, error, "is empty, and the key needs a value");
	if (len > info->max) {
		snprintf(what, sizeof(what), "is too long: at most %lld bytes are allowed", (long long)info->max);
		return wrong(info, given, error, what);
	}
	if (!is_clean(given->text))
		return wrong(info, given, error, "has control characters in it");
	if (info->secrecy == SECRECY_OPEN && !view_is_utf8(view_of(given->text)))
		return wrong(info, given, error, "is not UTF-8");
	const char *fault = len == 0 ? NULL : form_fault(info->unit, given->text);
	if (fault != NULL)
		return wrong(info, given, error, fault);
	ret_value->text = len == 0 ? NULL : given->text;
	return FATE_OK;
}

/* --- lists --- */

/* Takes one word off *text and writes it, with a NUL, to word; never more bytes than it takes off, the
 * text's own NUL counted. 'Single quotes' keep blanks, '' in them is a quote. Returns what follows the NUL
 * in word, or NULL when a quote is not closed. */
static char *word_take(const char **text, char *word)
{
	const char *at = *text;
	bool quoted = false;
	for (; *at != '\0' && (quoted || (*at != ' ' && *at != '\t')); at++) {
		if (*at != '\'') {
			*word++ = *at;
		} else if (quoted && at[1] == '\'') {
			*word++ = '\'';
			at++;
		} else {
			quoted = !quoted;
		}
	}
	*word++ = '\0';
	*text = at + strspn(at, " \t");
	return quoted ? NULL : word;
}

static enum fate parse_list(const struct param_info *info, const struct given_text *given,
                            struct arena *arena, struct value *ret_value, struct error *error)
{
	if (!is_clean(given->text))
		return wrong(info, given, error, "has control characters in it");
	size_t bytes = strlen(given->text);
	const char **list = arena_array(arena, bytes / 2 + 2, sizeof(*list)); /* words, blanks between, NULL */
	char *word = arena_alloc(arena, bytes + 1);
	if (list == NULL || word == NULL)
		return config_no_memory(error);
	const char *at = given->text + strspn(given->text, " \t");
	size_t len = 0;
	while (*at != '\0') {
		list[len++] = word;
		word = word_take(&at, word);
		if (word == NULL)
			return wrong(info, given, error, "has a single quote that is not closed");
	}
	ret_value->list = list;
	ret_value->list_len = len;
	return FATE_OK;
}

enum fate value_parse(const struct param_info *info, const struct given_text *given, struct arena *arena,
                      struct value *ret_value, struct error *error)
{
	*ret_value = (struct value){ 0 };
	switch (info->type) {
	case TYPE_NUMBER:
		return parse_number(info, given, ret_value, error);
	case TYPE_FLAG:
		return parse_flag(info, given, ret_value, error);
	case TYPE_CHOICE:
		return parse_choice(info, given, ret_value, error);
	case TYPE_LIST:
		return parse_list(info, given, arena, ret_value, error);
	case TYPE_TEXT:
		break;
	}
	return parse_text(info, given, ret_value, error);
}
