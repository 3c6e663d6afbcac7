#include "cli/redrive.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

static enum redrive_choice FM_PRINTF(3, 4) leave(char *why, size_t cap, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, cap, fmt, args);
	va_end(args);
	return REDRIVE_LEAVE;
}

/* Whoever may write to the dead letters must not by that come to write anywhere: where a letter says that it came
 * from is only believed when it is one of the two topics that dead letters come from. */
static bool is_source(const struct redrive_rules *rules, struct view topic)
{
	return view_equal_text(topic, rules->suspends) || view_equal_text(topic, rules->approvals);
}

static bool was_redriven(const struct redrive_rules *rules, const struct letter *letter)
{
	char origin[LETTER_ORIGIN_MAX];

	return !rules->again && text_set_has(rules->done, view_of(letter_origin(letter, origin)));
}

enum redrive_choice redrive_choose(const struct redrive_rules *rules, const struct letter *letter,
                                   struct view *ret_topic, char *ret_why, size_t cap)
{
	if (!letter->known)
		return leave(ret_why, cap, "Fermata did not write it: its headers do not say where it came from");
	if (was_redriven(rules, letter)) {
		snprintf(ret_why, cap, "it was redriven before; --again sends it once more");
		return REDRIVE_DONE;
	}
	if (letter_is_emptied(letter))
		return leave(ret_why, cap,
		             "its value was left out, for the dead-letters topic did not take it: its sender has to "
		             "send it again");
	if (letter->redrives < 0)
		return leave(ret_why, cap, "its header " LETTER_REDRIVES_HEADER " is no number");
	if (letter->redrives >= rules->max_redrives)
		return leave(ret_why, cap,
		             "it was redriven %" PRId64 " times and came back each time (--max-redrives %" PRId64 ")",
		             letter->redrives, rules->max_redrives);
	if (letter->value.len > rules->record_bytes)
		return leave(ret_why, cap,
		             "it has %zu bytes, more than limits.record_bytes: raise that first, of the workers too",
		             letter->value.len);
	if (rules->to == NULL && !is_source(rules, letter->topic))
		return leave(ret_why, cap,
		             "it came from %.*s, which is neither topics.suspends nor topics.approvals: say --to",
		             (int)letter->topic.len, (const char *)letter->topic.data);
	*ret_topic = rules->to != NULL ? view_of(rules->to) : letter->topic;
	return REDRIVE_SEND;
}
