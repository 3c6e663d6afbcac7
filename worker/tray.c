#include "worker/tray.h"

#include "core/clock.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

struct tray_entry {
	struct tray_event event; /* first: an id that is looked for is one, too */
	struct tray_entry *older;
	struct tray_entry *newer;
	int64_t put_ms;  /* mono */
	uint64_t number; /* of tray->puts */
	size_t len;      /* of all of it */
	uint8_t bytes[]; /* what the views of event show */
};

static int by_id(const void *a, const void *b)
{
	return uuid_compare(&((const struct tray_event *)a)->id, &((const struct tray_event *)b)->id);
}

/* ---- entries ---- */

static struct view put_view(struct tray_entry *entry, size_t *at, struct view from)
{
	if (view_is_null(from))
		return VIEW_NULL;
	struct view copy = { entry->bytes + *at, from.len };
	if (from.len > 0)
		memcpy(entry->bytes + *at, from.data, from.len);
	*at += from.len;
	return copy;
}

static struct tray_entry *entry_new(const struct tray_event *event, size_t len)
{
	struct tray_entry *entry = malloc(len);
	size_t at = 0;
	if (entry == NULL)
		return NULL;
	*entry = (struct tray_entry){ .event = *event, .put_ms = clock_mono_ms(), .len = len };
	entry->event.value = put_view(entry, &at, event->value);
	entry->event.traceparent = put_view(entry, &at, event->traceparent);
	entry->event.tracestate = put_view(entry, &at, event->tracestate);
	return entry;
}

static void entry_free(struct tray *tray, struct tray_entry *entry)
{
	size_t len = entry->len;
	tray->bytes -= len;
	memory_wipe(entry, len);
	free(entry);
}

/* Off the list and out of the tree. */
static void take_off(struct tray *tray, struct tray_entry *entry)
{
	tdelete(entry, &tray->by_id, by_id);
	*(entry->older != NULL ? &entry->older->newer : &tray->oldest) = entry->newer;
	*(entry->newer != NULL ? &entry->newer->older : &tray->newest) = entry->older;
}

static void throw_away(struct tray *tray, struct tray_entry *entry)
{
	take_off(tray, entry);
	entry_free(tray, entry);
}

static struct tray_entry *find(struct tray *tray, const struct uuid *id)
{
	struct tray_event key = { .id = *id };
	struct tray_entry *const *found = tfind(&key, &tray->by_id, by_id);
	return found == NULL ? NULL : *found;
}

static bool is_old(const struct tray_entry *entry, int64_t now_ms)
{
	return now_ms - entry->put_ms >= TRAY_MS;
}

static void throw_old_away(struct tray *tray)
{
	int64_t now_ms = clock_mono_ms();
	while (tray->oldest != NULL && is_old(tray->oldest, now_ms))
		throw_away(tray, tray->oldest);
}

/* ---- the tray ---- */

void tray_init(struct tray *tray, size_t ceiling)
{
	*tray = (struct tray){ .ceiling = ceiling };
	pthread_mutex_init(&tray->mutex, NULL);
}

void tray_done(struct tray *tray)
{
	tray_clear(tray);
	tray_wash(tray);
	pthread_mutex_destroy(&tray->mutex);
}

static void put(struct tray *tray, const struct tray_event *event)
{
	size_t len =
		sizeof(struct tray_entry) + event->value.len + event->traceparent.len + event->tracestate.len;
	struct tray_entry *there = find(tray, &event->id);
	if (there != NULL)
		throw_away(tray, there);
	throw_old_away(tray);
	struct tray_entry *entry = len <= tray->ceiling - tray->bytes ? entry_new(event, len) : NULL;
	if (entry == NULL)
		return;
	if (tsearch(entry, &tray->by_id, by_id) == NULL) {
		memory_wipe(entry, len);
		free(entry);
		return;
	}
	entry->number = tray->puts++;
	entry->older = tray->newest;
	*(tray->newest != NULL ? &tray->newest->newer : &tray->oldest) = entry;
	tray->newest = entry;
	tray->bytes += len;
}

void tray_put(struct tray *tray, const struct tray_event *event)
{
	pthread_mutex_lock(&tray->mutex);
	put(tray, event);
	pthread_mutex_unlock(&tray->mutex);
}

void tray_clear(struct tray *tray)
{
	pthread_mutex_lock(&tray->mutex);
	while (tray->oldest != NULL)
		throw_away(tray, tray->oldest);
	tray->fresh_len = 0;
	pthread_mutex_unlock(&tray->mutex);
}

uint64_t tray_mark(struct tray *tray)
{
	pthread_mutex_lock(&tray->mutex);
	uint64_t mark = tray->puts;
	pthread_mutex_unlock(&tray->mutex);
	return mark;
}

static struct tray_entry *take(struct tray *tray, const struct uuid *id, int64_t version)
{
	struct tray_entry *entry = find(tray, id);
	if (entry == NULL || entry->event.version > version)
		return NULL;
	if (entry->event.version < version || is_old(entry, clock_mono_ms())) {
		throw_away(tray, entry);
		return NULL;
	}
	take_off(tray, entry);
	entry->newer = tray->taken;
	tray->taken = entry;
	return entry;
}

const struct tray_event *tray_take(struct tray *tray, const struct uuid *id, int64_t version)
{
	pthread_mutex_lock(&tray->mutex);
	const struct tray_entry *entry = take(tray, id, version);
	pthread_mutex_unlock(&tray->mutex);
	return entry == NULL ? NULL : &entry->event;
}

void tray_wash(struct tray *tray)
{
	pthread_mutex_lock(&tray->mutex);
	while (tray->taken != NULL) {
		struct tray_entry *entry = tray->taken;
		tray->taken = entry->newer;
		entry_free(tray, entry);
	}
	pthread_mutex_unlock(&tray->mutex);
}

void tray_sweep(struct tray *tray, uint64_t mark)
{
	pthread_mutex_lock(&tray->mutex);
	while (tray->oldest != NULL && tray->oldest->number < mark)
		throw_away(tray, tray->oldest);
	pthread_mutex_unlock(&tray->mutex);
}

/* ---- what was decided ---- */

void tray_note(struct tray *tray, const struct fresh *fresh)
{
	pthread_mutex_lock(&tray->mutex);
	if (tray->fresh_len < TRAY_FRESH_MAX)
		tray->fresh[tray->fresh_len] = *fresh;
	if (tray->fresh_len <= TRAY_FRESH_MAX)
		tray->fresh_len++;
	pthread_mutex_unlock(&tray->mutex);
}

size_t tray_noted(struct tray *tray, struct fresh ret_fresh[TRAY_FRESH_MAX])
{
	pthread_mutex_lock(&tray->mutex);
	size_t len = tray->fresh_len <= TRAY_FRESH_MAX ? tray->fresh_len : 0;
	if (len > 0)
		memcpy(ret_fresh, tray->fresh, len * sizeof(*ret_fresh));
	tray->fresh_len = 0;
	pthread_mutex_unlock(&tray->mutex);
	return len;
}
