/* value.h - from the text of a setting to its checked value. */
#ifndef FERMATA_CONFIG_VALUE_H
#define FERMATA_CONFIG_VALUE_H

#include "config/params.h"

struct value {
	int64_t number;          /* NUMBER, FLAG (0, 1), CHOICE (index) */
	const char *text;        /* TEXT; NULL when empty */
	const char *const *list; /* LIST; NULL after the last */
	size_t list_len;
};

/* A setting as somebody gave it: its full key, its text, and where it was said. All borrow. */
struct given_text {
	const char *key;
	const char *text;
	const char *origin;
};

/* FATAL with ERR_USAGE: the message says key, origin and what is allowed. value->text borrows from
 * given->text, lists live in the arena. */
FM_MUSTCHECK enum fate value_parse(const struct param_info *info, const struct given_text *given,
                                   struct arena *arena, struct value *ret_value, struct error *error);

/* A text as an error message shows it: control characters (and everything beyond ASCII, when the text is
 * not UTF-8) become '?', and what is too long is cut. */
struct shown {
	char text[80];
};
/* Cut at the end: for keys and values. */
struct shown value_shown(const char *text);
/* Cut at the start: for paths and origins, whose end says the most. */
struct shown origin_shown(const char *text);

/* FATAL: out of memory while reading the configuration. */
enum fate config_no_memory(struct error *error);

#endif
