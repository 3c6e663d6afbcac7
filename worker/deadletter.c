#include "worker/deadletter.h"

#include "consumer/reader.h"
#include "core/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define ACK_TIMEOUT_MS 10000
#define OWN_HEADERS    7

/* One letter on its way. */
struct letter {
	struct item *item;
	struct outgoing outgoing;
	bool acknowledged;
	bool too_large_for_topic;
	bool without_value;
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
	char *timestamp = arena_printf(arena, "%" PRId64, at->appended_at / 1000);
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

static enum fate write_letter(struct letter *letter, const char *topic, struct arena *arena,
                              struct error *error)
{
	struct item *item = letter->item;
	struct header *original;
	size_t original_len;
	enum fate fate = record_headers(&item->record, arena, &original, &original_len, error);
	if (fate != FATE_OK)
		return fate;
	struct header *headers = arena_array(arena, original_len + OWN_HEADERS, sizeof(*headers));
	if (headers == NULL || !own_headers(item, letter->without_value, headers + original_len, arena))
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for a dead letter");
	if (original_len > 0)
		memcpy(headers, original, original_len * sizeof(*headers));
	struct view value = item->record.value;
	if (letter->without_value && !view_is_null(value))
		value = VIEW_LITERAL("");
	letter->outgoing = (struct outgoing){
		.topic = topic,
		.partition = PARTITION_BY_KEY,
		.key = item->record.key,
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
}

/* Hands the letter to the producer; one that the producer itself finds too large is marked. */
static enum fate post(struct producer *producer, const char *topic, struct letter *letter,
                      struct arena *arena, struct error *error)
{
	enum fate fate = write_letter(letter, topic, arena, error);
	if (fate == FATE_OK)
		fate = producer_send(producer, &letter->outgoing, error);
	if (fate == FATE_REJECT && error->code == ERR_TOO_LARGE) {
		letter->too_large_for_topic = true;
		return FATE_OK;
	}
	return fate;
}

/* Posts every letter that is not acknowledged and waits for the answers. */
static enum fate post_all(struct producer *producer, const char *topic, struct letter *letters, size_t len,
                          struct arena *arena, struct error *error)
{
	for (size_t i = 0; i < len; i++) {
		if (letters[i].acknowledged)
			continue;
		letters[i].too_large_for_topic = false;
		enum fate fate = post(producer, topic, &letters[i], arena, error);
		if (fate != FATE_OK)
			return fate;
	}
	enum fate fate = producer_wait(producer, ACK_TIMEOUT_MS, error);
	return fate == FATE_REJECT ? FATE_OK : fate; /* which letter it was, the reports have said */
}

static void leave_out_value(struct letter *letter)
{
	const struct coordinates *at = &letter->item->record.at;
	log_warn("deadletter",
	         "record at %s [%" PRId32 "] offset %" PRId64
	         " is too large for the dead-letters topic: its letter goes without the value, as too_large",
	         at->topic, at->partition, at->offset);
	letter->without_value = true;
}

static enum fate send_letters(struct producer *producer, const char *topic, struct letter *letters,
                              size_t len, struct arena *arena, struct error *error)
{
	for (int round = 0; round < 2; round++) {
		enum fate fate = post_all(producer, topic, letters, len, arena, error);
		if (fate != FATE_OK)
			return fate;
		size_t left = 0;
		for (size_t i = 0; i < len; i++) {
			if (letters[i].acknowledged)
				continue;
			left++;
			if (letters[i].too_large_for_topic)
				leave_out_value(&letters[i]);
		}
		if (left == 0)
			return FATE_OK;
	}
	return error_set(error, FATE_RETRY, ERR_SERVICE, "not every letter was acknowledged");
}

enum fate deadletter_send(struct producer *producer, const char *topic, struct item **items, size_t len,
                          struct arena *arena, struct error *error)
{
	size_t dead = 0;
	for (size_t i = 0; i < len; i++)
		dead += items[i]->dead;
	if (dead == 0)
		return FATE_OK;
	struct letter *letters = arena_array(arena, dead, sizeof(*letters));
	if (letters == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for %zu dead letters", dead);
	dead = 0;
	for (size_t i = 0; i < len; i++)
		if (items[i]->dead)
			letters[dead++].item = items[i];
	enum fate fate = send_letters(producer, topic, letters, dead, arena, error);
	return fate == FATE_OK ? FATE_OK : error_wrap(error, "sending dead letters to %s", topic);
}
