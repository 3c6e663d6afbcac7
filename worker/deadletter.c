#include "worker/deadletter.h"

#include "consumer/reader.h"
#include "core/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ACK_TIMEOUT_MS 10000
#define QUEUE_POLL_MS  50
#define HEADERS_BYTES                                                                                        \
	((size_t)512 << 20) /* ceiling on the headers of one record: more than any broker takes */
#define OWN_HEADERS 7

/* How much of the record goes with it. Each step down is taken when the topic finds the letter too large. */
enum fullness {
	LETTER_WHOLE,
	LETTER_WITHOUT_VALUE,
	LETTER_BARE, /* without key and headers too: that it was there, and where, is still said */
};

/* One letter on its way. */
struct letter {
	struct item *item;
	enum fullness fullness;
	bool acknowledged;
	struct error why; /* what the broker last said against it */
	bool too_large_for_topic;
};

static struct header text_header(const char *name, const char *text)
{
	return (struct header){ .name = name, .value = view_of(text) };
}

/* Fills headers (room for OWN_HEADERS) with what went wrong. stage: which of the two intakes. */
static bool own_headers(const struct item *item, bool too_large, struct header *headers, struct arena *arena)
{
	const struct coordinates *at = &item->record.at;
	const char *code = error_code_name(too_large ? ERR_TOO_LARGE : item->why.code);
	char *partition = arena_printf(arena, "%" PRId32, at->partition);
	char *offset = arena_printf(arena, "%" PRId64, at->offset);
	int64_t timestamp_ms = at->appended_at == TIME_NONE ? -1 : at->appended_at / 1000;
	char *timestamp = arena_printf(arena, "%" PRId64, timestamp_ms);
	char *reason = too_large
	                   ? arena_printf(arena,
	                                  "too large for the dead-letters topic, its value is left out; it was: "
	                                  "%s: %s",
	                                  error_code_name(item->why.code), item->why.message)
	                   : arena_printf(arena, "%s", item->why.message);
	if (partition == NULL || offset == NULL || timestamp == NULL || reason == NULL)
		return false;
	headers[0] = text_header("fermata.error.code", code);
	headers[1] = text_header("fermata.error.reason", reason);
	headers[2] = text_header("fermata.error.topic", at->topic);
	headers[3] = text_header("fermata.error.partition", partition);
	headers[4] = text_header("fermata.error.offset", offset);
	headers[5] = text_header("fermata.error.timestamp", timestamp);
	headers[6] = text_header("fermata.error.stage", item->suspend ? "suspend" : "approval");
	return true;
}

static enum fate write_letter(struct letter *letter, struct arena *arena, struct outgoing *ret_outgoing,
                              struct error *error)
{
	struct item *item = letter->item;
	struct header *original = NULL;
	size_t original_len = 0;
	enum fate fate = letter->fullness == LETTER_BARE
	                     ? FATE_OK
	                     : record_headers(&item->record, arena, &original, &original_len, error);
	if (fate != FATE_OK)
		return fate;
	struct header *headers = arena_array(arena, original_len + OWN_HEADERS, sizeof(*headers));
	if (headers == NULL ||
	    !own_headers(item, letter->fullness != LETTER_WHOLE, headers + original_len, arena))
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a dead letter");
	if (original_len > 0)
		memcpy(headers, original, original_len * sizeof(*headers));
	struct view value = item->record.value;
	if (letter->fullness != LETTER_WHOLE && !view_is_null(value))
		value = VIEW_LITERAL("");
	*ret_outgoing = (struct outgoing){
		.partition = PARTITION_BY_KEY,
		.key = letter->fullness == LETTER_BARE ? VIEW_NULL : item->record.key,
		.value = value,
		.headers = headers,
		.headers_len = original_len + OWN_HEADERS,
		.timestamp_us = TIME_NONE,
		.tag = letter,
	};
	return FATE_OK;
}

void deadletter_report(void *context, const struct outgoing *sent, int64_t offset, const struct error *error)
{
	(void)context;
	(void)offset;
	struct letter *letter = sent->tag;
	letter->acknowledged = error == NULL;
	letter->too_large_for_topic = error != NULL && error->code == ERR_TOO_LARGE;
	if (error != NULL)
		letter->why = *error;
}

/* The queue of the producer may be full of the letters before: they leave meanwhile. */
static enum fate send_when_room(struct producer *producer, const struct outgoing *outgoing,
                                struct error *error)
{
	int64_t until_ms = clock_mono_ms() + ACK_TIMEOUT_MS;
	enum fate fate = producer_send(producer, outgoing, error);
	while (fate == FATE_RETRY && clock_mono_ms() < until_ms) {
		producer_poll(producer, QUEUE_POLL_MS);
		fate = producer_send(producer, outgoing, error);
	}
	return fate;
}

/* Hands the letter to the producer, which copies it; one that the producer itself finds too large is marked.
 * The headers of many records are together more than a batch's memory, so each letter has its own. */
static enum fate post(struct producer *producer, const char *topic, struct letter *letter,
                      struct error *error)
{
	struct outgoing outgoing = { 0 };
	struct arena *arena = arena_new(HEADERS_BYTES);
	if (arena == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a dead letter");
	enum fate fate = write_letter(letter, arena, &outgoing, error);
	outgoing.topic = topic;
	if (fate == FATE_OK)
		fate = send_when_room(producer, &outgoing, error);
	arena_free(arena);
	if (fate == FATE_REJECT && error->code == ERR_TOO_LARGE) {
		letter->too_large_for_topic = true;
		return FATE_OK;
	}
	return fate;
}

/* Waits for the answers. Which letter was too large, the reports have said. */
static enum fate wait_for_answers(struct producer *producer, struct error *error)
{
	enum fate fate = producer_wait(producer, ACK_TIMEOUT_MS, error);
	return fate == FATE_REJECT ? FATE_OK : fate;
}

static enum fate send_together(struct producer *producer, const char *topic, struct letter *letters,
                               size_t len, struct error *error)
{
	for (size_t i = 0; i < len; i++) {
		enum fate fate = post(producer, topic, &letters[i], error);
		if (fate != FATE_OK)
			return fate;
	}
	return wait_for_answers(producer, error);
}

static void leave_out(struct letter *letter)
{
	const struct coordinates *at = &letter->item->record.at;
	letter->fullness = letter->fullness == LETTER_WHOLE ? LETTER_WITHOUT_VALUE : LETTER_BARE;
	log_warn("deadletter",
	         "record at %s [%" PRId32 "] offset %" PRId64
	         " is too large for the dead-letters topic: its letter goes without the value%s",
	         at->topic, at->partition, at->offset,
	         letter->fullness == LETTER_BARE ? ", key and headers" : "");
}

/* A broker refuses letters that came in one request together, though each may be small enough. */
static enum fate send_alone(struct producer *producer, const char *topic, struct letter *letter,
                            struct error *error)
{
	for (;;) {
		letter->too_large_for_topic = false;
		enum fate fate = send_together(producer, topic, letter, 1, error);
		if (fate != FATE_OK || letter->acknowledged)
			return fate;
		if (!letter->too_large_for_topic || letter->fullness == LETTER_BARE)
			return error_set_native(error, FATE_RETRY, ERR_SERVICE, letter->why.native,
			                        "the broker does not take it, and its partition waits: %s",
			                        letter->why.message);
		leave_out(letter);
	}
}

static enum fate send_letters(struct producer *producer, const char *topic, struct letter *letters,
                              size_t len, struct error *error)
{
	enum fate fate = send_together(producer, topic, letters, len, error);
	for (size_t i = 0; i < len && fate == FATE_OK; i++)
		if (!letters[i].acknowledged)
			fate = send_alone(producer, topic, &letters[i], error);
	return fate;
}

enum fate deadletter_send(struct producer *producer, const char *topic, struct item **items, size_t len,
                          struct arena *arena, struct error *error)
{
	size_t dead = 0;
	for (size_t i = 0; i < len; i++)
		dead += items[i]->dead && !items[i]->lettered;
	if (dead == 0)
		return FATE_OK;
	struct letter *letters = arena_array(arena, dead, sizeof(*letters));
	if (letters == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for %zu dead letters", dead);
	dead = 0;
	for (size_t i = 0; i < len; i++)
		if (items[i]->dead && !items[i]->lettered)
			letters[dead++].item = items[i];
	enum fate fate = send_letters(producer, topic, letters, dead, error);
	return fate == FATE_OK ? FATE_OK : error_wrap(error, "sending dead letters to %s", topic);
}
