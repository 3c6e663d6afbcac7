#include "cli/letters.h"

#include "cli/connect.h"
#include "cli/moment.h"
#include "cli/text_set.h"
#include "cli/topic_tail.h"

#include <inttypes.h>

#define HEADERS_BYTES                                                                                        \
	((size_t)512 << 20) /* ceiling on the headers of one letter: more than any broker takes */
#define POLL_MS 200

/* ---- the filter ---- */

static enum fate take_moment(const struct cli *cli, const char *option, int64_t *moment, struct error *error)
{
	const char *text = cli_value(cli, option);

	return text == NULL ? FATE_OK : moment_parse(option, text, cli->started_at, moment, error);
}

enum fate letter_filter_take(const struct cli *cli, struct letter_filter *ret_filter, struct error *error)
{
	const char *code = cli_value(cli, "code"), *codes;

	*ret_filter = (struct letter_filter){ .code = view_of(code),
		                                  .topic = view_of(cli_value(cli, "topic")),
		                                  .until = INT64_MAX };
	if (code != NULL && !letter_code_is_known(code, &codes))
		return error_set(error, FATE_FATAL, ERR_USAGE, "--code %.40s: there is %s", code, codes);
	enum fate fate = take_moment(cli, "since", &ret_filter->since, error);

	return fate == FATE_OK ? take_moment(cli, "until", &ret_filter->until, error) : fate;
}

static bool wish(struct view wanted, struct view have)
{
	return view_is_null(wanted) || view_equal(wanted, have);
}

bool letter_filter_passes(const struct letter_filter *filter, const struct letter *letter)
{
	int64_t at = letter->at.appended_at;

	return (filter->since == 0 || at >= filter->since) && at < filter->until &&
	       wish(filter->code, letter->code) && wish(filter->topic, letter->topic);
}

/* ---- from a record to a letter ---- */

struct handing {
	struct arena *arena; /* of the headers of one letter */
	letters_each *each;
	void *context;
	struct error error; /* what ended it; fate OK: nothing did */
};

static enum fate handing_init(struct handing *handing, letters_each *each, void *context, struct error *error)
{
	*handing = (struct handing){
		.arena = arena_new(HEADERS_BYTES), .each = each, .context = context, .error = { .fate = FATE_OK }
	};
	return handing->arena != NULL
	           ? FATE_OK
	           : error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the headers of dead letters");
}

static bool read_letter(struct handing *handing, const struct record *record, struct letter *ret_letter)
{
	struct header *headers;
	size_t len;

	arena_reset(handing->arena);
	if (record_headers(record, handing->arena, &headers, &len, &handing->error) != FATE_OK)
		return false;
	letter_read(&record->at, record->key, record->value, headers, len, ret_letter);
	return true;
}

/* ---- all of them ---- */

struct walking {
	const struct letters_walk *walk;
	struct handing handing;
	struct text_set origins; /* of those that were given */
};

/* Is it the first letter of its record? */
static bool is_first(struct walking *walking, const struct letter *letter)
{
	char origin[LETTER_ORIGIN_MAX];
	bool fresh = true;

	if (walking->walk->doubles || !letter->known)
		return true;
	(void)!text_set_add(&walking->origins, view_of(letter_origin(letter, origin)), &fresh,
	                    &walking->handing.error);
	return fresh;
}

static bool each_record(void *context, const struct record *record)
{
	struct walking *walking = context;
	struct letter letter;

	if (!read_letter(&walking->handing, record, &letter))
		return false;
	if (!letter_filter_passes(&walking->walk->filter, &letter) || !is_first(walking, &letter))
		return walking->handing.error.fate == FATE_OK;
	return walking->handing.error.fate == FATE_OK && walking->walk->each(walking->walk->context, &letter);
}

static enum fate walk_topic(struct walking *walking, struct error *error)
{
	const char *topic = config_text(walking->walk->cli->config, PARAM_TOPICS_DEAD_LETTERS);
	struct topic_tail tail = { .cli = walking->walk->cli,
		                       .topics = &topic,
		                       .topics_len = 1,
		                       .since = walking->walk->filter.since,
		                       .each = each_record,
		                       .context = walking };
	enum fate fate = topic_tail_read(&tail, error);

	if (fate == FATE_OK && walking->handing.error.fate != FATE_OK) {
		*error = walking->handing.error;
		fate = error->fate;
	}
	return fate;
}

enum fate letters_walk(const struct letters_walk *walk, struct error *error)
{
	struct walking walking = { .walk = walk };
	enum fate fate = handing_init(&walking.handing, walk->each, walk->context, error);

	if (fate == FATE_OK)
		fate = text_set_init(&walking.origins, error);
	if (fate == FATE_OK)
		fate = walk_topic(&walking, error);
	text_set_done(&walking.origins);
	arena_free(walking.handing.arena);
	return fate;
}

/* ---- single ones ---- */

static enum fate no_letter(const struct letter_place *place, const char *why, struct error *error)
{
	return error_set(error, FATE_REJECT, ERR_NO, "there is no dead letter at %" PRId32 ":%" PRId64 ": %s",
	                 place->partition, place->offset, why);
}

/* Is the place within the topic? */
static enum fate check_place(struct reader *reader, const char *topic, const struct letter_place *place,
                             struct error *error)
{
	int32_t partitions;
	int64_t low, end;
	enum fate fate = reader_partitions(reader, topic, KAFKA_PATIENCE_MS, &partitions, error);

	if (fate != FATE_OK)
		return fate;
	if (partitions == 0)
		return no_such_topic(topic, error);
	if (place->partition >= partitions)
		return no_letter(place, "the topic has fewer partitions", error);
	fate = reader_range(reader, topic, place->partition, KAFKA_PATIENCE_MS, &low, &end, error);
	if (fate == FATE_OK && place->offset < low)
		fate = no_letter(place, "it is gone: the topic's retention has taken it", error);
	if (fate == FATE_OK && place->offset >= end)
		fate = no_letter(place, "the partition ends before it", error);
	return fate;
}

/* Polls until the record at the place is there; what stands in its place may be no record (a marker, a gap). */
static enum fate await(struct reader *reader, const struct letter_place *place, struct record *ret_record,
                       struct error *error)
{
	int64_t until = clock_mono_ms() + KAFKA_PATIENCE_MS;

	while (clock_mono_ms() < until) {
		enum reader_event event;
		enum fate fate = reader_poll(reader, POLL_MS, &event, ret_record, error);
		if (fate == FATE_FATAL)
			return fate;
		if (fate != FATE_OK || event == READER_NOTHING)
			continue;
		if (event == READER_RECORD && ret_record->at.offset == place->offset)
			return FATE_OK;
		record_done(ret_record);
		return no_letter(place, "what stands there is none", error);
	}
	return error_set(error, FATE_RETRY, ERR_SERVICE, "Kafka gave no record within %d s",
	                 KAFKA_PATIENCE_MS / 1000);
}

static enum fate give_one(struct reader *reader, const char *topic, const struct letter_place *place,
                          struct handing *handing, bool *ret_enough, struct error *error)
{
	struct record record = { .message = NULL };
	struct partition_at at = { topic, place->partition, place->offset };
	struct letter letter;
	enum fate fate = check_place(reader, topic, place, error);

	if (fate == FATE_OK)
		fate = reader_start(reader, &at, 1, error);
	if (fate == FATE_OK)
		fate = await(reader, place, &record, error);
	if (fate != FATE_OK)
		return fate;
	if (read_letter(handing, &record, &letter))
		*ret_enough = !handing->each(handing->context, &letter);
	record_done(&record);
	if (handing->error.fate != FATE_OK)
		*error = handing->error;
	return handing->error.fate;
}

enum fate letters_at(const struct cli *cli, const struct letter_place *places, size_t len, letters_each *each,
                     void *context, struct error *error)
{
	const char *topic = config_text(cli->config, PARAM_TOPICS_DEAD_LETTERS);
	struct reader *reader = NULL;
	struct handing handing;
	bool enough = false;
	enum fate fate = handing_init(&handing, each, context, error);

	if (fate == FATE_OK)
		fate = connect_reader(cli, false, &reader, error);
	for (size_t i = 0; i < len && fate == FATE_OK && !enough; i++)
		fate = give_one(reader, topic, &places[i], &handing, &enough, error);
	if (fate != FATE_OK)
		fate = kafka_away(cli, error);
	reader_close(reader, 2000);
	arena_free(handing.arena);
	return fate;
}
