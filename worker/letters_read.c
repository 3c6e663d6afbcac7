#include "worker/letters_known.h"
#include "worker/scan.h"

#define LETTER_BYTES ((size_t)256 << 20) /* the largest letter to expect: more than topics take */

/* Decimal digits and nothing else, below `most`; false: it is none. */
static bool read_number(struct view text, int64_t most, int64_t *ret_number)
{
	int64_t number = 0;
	if (view_is_null(text) || text.len == 0)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		int digit = text.data[i] - '0';
		if (digit < 0 || digit > 9 || number > (most - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*ret_number = number;
	return true;
}

struct reading {
	struct letters_known *letters;
	const char *suspends;
	const char *approvals;
	bool (*stop)(void *context);
	void *context;
};

/* What is no letter of ours (or of other topics) is passed over: anybody may have written it. */
static enum fate each(void *context, const struct scan_part *part, const struct record *record,
                      struct error *error)
{
	struct reading *reading = context;
	struct view topic = record_header(record, "fermata.error.topic");
	int64_t partition, offset;
	(void)part;
	bool suspend = view_equal_text(topic, reading->suspends);
	if (!suspend && !view_equal_text(topic, reading->approvals))
		return FATE_OK;
	if (!read_number(record_header(record, "fermata.error.partition"), INT32_MAX, &partition) ||
	    !read_number(record_header(record, "fermata.error.offset"), INT64_MAX, &offset))
		return FATE_OK;
	return letters_known_add(reading->letters, suspend, (int32_t)partition, offset, error);
}

static bool asked_to_stop(void *context)
{
	struct reading *reading = context;
	return reading->stop != NULL && reading->stop(reading->context);
}

enum fate letters_known_read(struct letters_known *letters, const struct config *config,
                             bool (*stop)(void *context), void *context, struct error *error)
{
	const char *topic = config_text(config, PARAM_TOPICS_DEAD_LETTERS);
	struct reading reading = {
		.letters = letters,
		.suspends = config_text(config, PARAM_TOPICS_SUSPENDS),
		.approvals = config_text(config, PARAM_TOPICS_APPROVALS),
		.stop = stop,
		.context = context,
	};
	struct scan scan = { .each = each, .stop = asked_to_stop, .context = &reading };
	enum fate fate = scan_open(&scan, config, LETTER_BYTES, error);
	if (fate == FATE_OK)
		fate = scan_add(&scan, topic, error);
	if (fate == FATE_OK)
		fate = scan_run(&scan, error);
	scan_close(&scan);
	letters_known_sort(letters);
	return fate == FATE_OK ? FATE_OK : error_wrap(error, "reading the dead letters in %.100s", topic);
}
