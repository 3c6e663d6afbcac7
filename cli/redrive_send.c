#include "cli/redrive.h"

#include "cli/connect.h"
#include "cli/login.h"
#include "store/store_redrive.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#define BATCH_BYTES   ((size_t)8 << 20)
#define ARENA_BYTES   ((size_t)1 << 30)
#define DELIVERY_MS   10000 /* the server ends a transaction that is idle for 30 s */
#define SPARE_BYTES   ((size_t)1 << 20)
#define QUEUE_POLL_MS 50

/* ---- what was redriven before ---- */

static enum fate note_done(void *context, struct view origin, struct error *error)
{
	struct redrive_sender *sender = context;

	return text_set_add(&sender->done, origin, NULL, error);
}

enum fate redrive_open(struct redrive_sender *sender, const struct cli *cli, struct error *error)
{
	enum fate fate = text_set_init(&sender->done, error);

	sender->cli = cli;
	sender->arena = arena_new(ARENA_BYTES);
	login_at_host(sender->who, sizeof(sender->who));
	if (fate == FATE_OK && sender->arena == NULL)
		fate = error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for dead letters");
	if (fate == FATE_OK)
		fate = connect_store(cli, &sender->store, error);
	return fate == FATE_OK ? store_redriven(sender->store, &sender->seq, note_done, sender, error) : fate;
}

void redrive_close(struct redrive_sender *sender)
{
	producer_close(sender->producer);
	store_close(sender->store);
	arena_free(sender->arena);
	text_set_done(&sender->done);
	for (size_t i = 0; i < sender->targets_len; i++)
		free(sender->targets[i].topic);
}

/* ---- gathering ---- */

/* A quarter of a second's worth, so that the rate is kept evenly. */
static size_t batch_records(const struct redrive_sender *sender)
{
	size_t records = sender->rate / 4;

	return records < 1 ? 1 : records < REDRIVE_BATCH_MAX ? records : REDRIVE_BATCH_MAX;
}

bool redrive_is_full(const struct redrive_sender *sender, size_t more_bytes)
{
	return sender->len > 0 &&
	       (sender->len >= batch_records(sender) || sender->bytes + more_bytes > BATCH_BYTES);
}

static bool keep(struct arena *arena, struct view *view)
{
	if (view_is_null(*view))
		return true;
	*view = arena_copy(arena, *view);
	return !view_is_null(*view);
}

static bool keep_headers(struct arena *arena, struct redrive_item *item)
{
	for (size_t i = 0; i < item->headers_len; i++) {
		item->headers[i].name = arena_text(arena, view_of(item->headers[i].name));
		if (item->headers[i].name == NULL || !keep(arena, &item->headers[i].value))
			return false;
	}
	return true;
}

static bool keep_letter(struct arena *arena, struct letter *letter)
{
	letter->headers = NULL; /* those that go are the item's */
	letter->headers_len = 0;
	return keep(arena, &letter->key) && keep(arena, &letter->value) && keep(arena, &letter->code) &&
	       keep(arena, &letter->reason) && keep(arena, &letter->stage) && keep(arena, &letter->topic);
}

enum fate redrive_add(struct redrive_sender *sender, const struct letter *letter, struct view topic,
                      struct error *error)
{
	struct redrive_item *item = &sender->items[sender->len];
	char origin[LETTER_ORIGIN_MAX];
	enum fate fate;

	*item = (struct redrive_item){ .letter = *letter, .why = { .fate = FATE_OK } };
	fate = letter_headers_back(letter, sender->arena, &item->headers, &item->headers_len, error);
	if (fate != FATE_OK)
		return fate;
	item->origin = arena_text(sender->arena, view_of(letter_origin(letter, origin)));
	item->topic = arena_text(sender->arena, topic);
	if (item->origin == NULL || item->topic == NULL || !keep_headers(sender->arena, item) ||
	    !keep_letter(sender->arena, &item->letter))
		return error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for a dead letter");
	sender->len++;
	sender->bytes += letter->key.len + letter->value.len;
	return FATE_OK;
}

void redrive_forget(struct redrive_sender *sender)
{
	sender->len = 0;
	sender->bytes = 0;
	arena_reset(sender->arena);
}

/* ---- producing ---- */

static void on_report(void *context, const struct outgoing *sent, int64_t offset, const struct error *error)
{
	struct redrive_item *item = sent->tag;

	(void)context;
	item->acknowledged = error == NULL;
	item->partition = sent->partition;
	item->offset = offset;
	if (error != NULL)
		item->why = *error;
}

static enum fate open_producer(struct redrive_sender *sender, struct error *error)
{
	const struct config *config = sender->cli->config;
	struct producer_settings settings = {
		.client_id = "fermata-redrive",
		.message_bytes = widest_record(config) + SPARE_BYTES,
		.queue_bytes = BATCH_BYTES + widest_record(config) + SPARE_BYTES,
		.delivery_timeout_ms = DELIVERY_MS,
		.report = on_report,
		.report_context = sender,
	};

	if (sender->producer != NULL)
		return FATE_OK;
	settings.properties = config_kafka(config, KAFKA_PRODUCER, &settings.properties_len);
	return producer_open(&sender->producer, &settings, error);
}

/* How many partitions it has; it is asked once. */
static enum fate find_target(struct redrive_sender *sender, const char *topic, int32_t *ret_partitions,
                             struct error *error)
{
	for (size_t i = 0; i < sender->targets_len; i++)
		if (!strcmp(sender->targets[i].topic, topic)) {
			*ret_partitions = sender->targets[i].partitions;
			return FATE_OK;
		}
	enum fate fate = producer_warm(sender->producer, topic, KAFKA_PATIENCE_MS, ret_partitions, error);
	char *copy = strdup(topic);

	if (fate == FATE_REJECT)
		fate = no_such_topic(topic, error);
	if (fate == FATE_OK && (copy == NULL || sender->targets_len == REDRIVE_TARGETS_MAX))
		fate = error_set(error, FATE_FATAL, ERR_MEMORY, "no memory for the name of a topic");
	if (fate != FATE_OK) {
		free(copy);
		return fate;
	}
	sender->targets[sender->targets_len++] = (struct redrive_target){ copy, *ret_partitions };
	return FATE_OK;
}

/* Back to its partition, where there still is one of that number: to others by its key, as Kafka's clients do. */
static int32_t partition_of(const struct redrive_item *item)
{
	bool back = view_equal_text(item->letter.topic, item->topic) && item->letter.partition < item->partitions;

	return back ? item->letter.partition : PARTITION_BY_KEY;
}

static enum fate send_item(struct redrive_sender *sender, struct redrive_item *item, struct error *error)
{
	struct outgoing outgoing = {
		.topic = item->topic,
		.partition = partition_of(item),
		.key = item->letter.key,
		.value = item->letter.value,
		.headers = item->headers,
		.headers_len = item->headers_len,
		.timestamp_us = TIME_NONE,
		.tag = item,
	};
	int64_t until_ms = clock_mono_ms() + DELIVERY_MS;
	enum fate fate = producer_send(sender->producer, &outgoing, error);

	while (fate == FATE_RETRY && clock_mono_ms() < until_ms) { /* the queue is full: it drains */
		producer_poll(sender->producer, QUEUE_POLL_MS);
		fate = producer_send(sender->producer, &outgoing, error);
	}
	if (fate != FATE_REJECT)
		return fate;
	item->why = *error; /* too large for the producer: that is this letter's fault alone */
	return FATE_OK;
}

static enum fate send_items(struct redrive_sender *sender, struct error *error)
{
	enum fate fate = FATE_OK;

	for (size_t i = 0; i < sender->len && fate == FATE_OK; i++)
		if (!sender->items[i].passed_over)
			fate = send_item(sender, &sender->items[i], error);
	if (fate == FATE_OK)
		fate = producer_wait(sender->producer, DELIVERY_MS, error);
	return fate == FATE_REJECT ? FATE_OK : fate; /* the reports have said which */
}

/* ---- a batch ---- */

/* Somebody else may have redriven some of them since they were chosen. */
static void pass_over_done(struct redrive_sender *sender)
{
	for (size_t i = 0; i < sender->len; i++)
		if (!sender->again && text_set_has(&sender->done, view_of(sender->items[i].origin)))
			sender->items[i].passed_over = true;
}

/* Records those that were acknowledged, and ends the transaction. */
static enum fate record_sent(struct redrive_sender *sender, struct error *error)
{
	struct redriven sent[REDRIVE_BATCH_MAX];
	const char *first = NULL;
	size_t len = 0;

	for (size_t i = 0; i < sender->len; i++) {
		const struct redrive_item *item = &sender->items[i];
		if (!item->acknowledged)
			continue;
		first = first != NULL ? first : item->origin;
		sent[len++] = (struct redriven){ view_of(item->origin), view_of(item->topic) };
	}
	if (len == 0) {
		store_rollback(sender->store);
		return FATE_OK;
	}
	enum fate fate =
		store_redrive_mark(sender->store, view_of(sender->who), clock_real_us(), sent, len, error);
	if (fate == FATE_OK)
		fate = store_commit(sender->store, error);
	if (fate == FATE_OK)
		return FATE_OK;
	store_rollback(sender->store);
	return error_wrap(
		error,
		"%zu letters, of %.100s and on, were sent, which could not be recorded: another run sends "
		"them again",
		len, first);
}

static void wait_for_rate(struct redrive_sender *sender)
{
	int64_t now = clock_mono_ms();

	if (sender->next_ms > now)
		(void)poll(NULL, 0, (int)(sender->next_ms - now)); /* a signal ends it: then this batch is the last */
	now = clock_mono_ms();
	sender->next_ms =
		(sender->next_ms > now ? sender->next_ms : now) + (int64_t)sender->len * 1000 / (int64_t)sender->rate;
}

enum fate redrive_flush(struct redrive_sender *sender, struct error *error)
{
	struct error unsent = { .fate = FATE_OK };

	if (sender->len == 0)
		return FATE_OK;
	wait_for_rate(sender);
	enum fate fate = open_producer(sender, error);
	for (size_t i = 0; i < sender->len && fate == FATE_OK; i++)
		fate = find_target(sender, sender->items[i].topic, &sender->items[i].partitions, error);
	if (fate != FATE_OK)
		return kafka_away(sender->cli, error);
	fate = store_redrive_begin(sender->store, &sender->seq, note_done, sender, error);
	if (fate != FATE_OK)
		return fate;
	pass_over_done(sender);
	enum fate sending = send_items(sender, &unsent);
	fate = record_sent(sender, error); /* also what was acknowledged before another one failed */
	if (fate != FATE_OK || sending == FATE_OK)
		return fate;
	*error = unsent;
	return kafka_away(sender->cli, error);
}
