/* memory.c - views, buffers and the wiping. The arena has a file of its own. */
#include "core/memory.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <string.h>

#define BUFFER_FIRST 256          /* bytes of the first allocation of a buffer */
#define LARGE        (128 * 1024) /* with memory_keep_little: a piece of so many bytes, or the free end of a heap */
#define LITTLE       (16 * 1024) /* and so much of that end stays */

static _Atomic uint64_t refusals;

uint64_t memory_refusals(void)
{
	return atomic_load_explicit(&refusals, memory_order_relaxed);
}

void memory_note_refusal(void)
{
	atomic_fetch_add_explicit(&refusals, 1, memory_order_relaxed);
}

struct view view_of(const char *text)
{
	if (text == NULL)
		return VIEW_NULL;
	return (struct view){ (const uint8_t *)text, strlen(text) };
}

bool view_is_null(struct view view)
{
	return view.data == NULL;
}

bool view_equal(struct view a, struct view b)
{
	if (a.data == NULL || b.data == NULL)
		return a.data == b.data;
	return a.len == b.len && memcmp(a.data, b.data, a.len) == 0;
}

bool view_equal_text(struct view a, const char *text)
{
	return view_equal(a, view_of(text));
}

int view_compare(struct view a, struct view b)
{
	if (a.data == NULL || b.data == NULL)
		return (a.data != NULL) - (b.data != NULL);
	size_t common = a.len < b.len ? a.len : b.len;
	int order = memcmp(a.data, b.data, common);
	if (order != 0)
		return order;
	return (a.len > b.len) - (a.len < b.len);
}

/* Unicode's table 3-7: after these first bytes the second one has a range of its own. */
static bool second_fits(uint8_t first, uint8_t second)
{
	uint8_t low = 0x80;
	uint8_t high = 0xBF;

	if (first == 0xE0)
		low = 0xA0; /* else overlong */
	else if (first == 0xED)
		high = 0x9F; /* else a surrogate */
	else if (first == 0xF0)
		low = 0x90; /* else overlong */
	else if (first == 0xF4)
		high = 0x8F; /* else above U+10FFFF */
	return second >= low && second <= high;
}

size_t view_utf8_step(struct view view)
{
	if (view.len == 0)
		return 0;
	uint8_t first = view.data[0];
	if (first < 0x80)
		return 1;
	if (first < 0xC2 || first > 0xF4)
		return 0;
	size_t len = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
	if (view.len < len || !second_fits(first, view.data[1]))
		return 0;
	for (size_t i = 2; i < len; i++)
		if ((view.data[i] & 0xC0) != 0x80)
			return 0;
	return len;
}

/* How many of the next bytes are ASCII, counted eight at a time: most of what passes here is. */
static size_t ascii_run(const uint8_t *data, size_t len)
{
	size_t at = 0;
	uint64_t word;

	while (len - at >= sizeof(word)) {
		memcpy(&word, data + at, sizeof(word));
		if ((word & UINT64_C(0x8080808080808080)) != 0)
			break;
		at += sizeof(word);
	}
	return at;
}

bool view_is_utf8(struct view view)
{
	size_t at = 0;

	while (at < view.len) {
		at += ascii_run(view.data + at, view.len - at);
		if (at == view.len)
			break;
		size_t step = view_utf8_step((struct view){ view.data + at, view.len - at });
		if (step == 0)
			return false;
		at += step;
	}
	return true;
}

bool view_has_nul(struct view view)
{
	return view.len > 0 && memchr(view.data, 0, view.len) != NULL;
}

void buffer_init(struct buffer *buffer, size_t ceiling)
{
	*buffer = (struct buffer){ .ceiling = ceiling };
}

/* Moves to an allocation of at least need bytes. Not realloc: the old bytes have to be wiped. There is
 * always one byte more than cap, for the NUL that vsnprintf writes. */
static bool grow(struct buffer *buffer, size_t need)
{
	size_t cap = buffer->cap < BUFFER_FIRST ? BUFFER_FIRST : buffer->cap;

	while (cap < need && cap <= buffer->ceiling / 2)
		cap *= 2;
	if (cap < need || cap > buffer->ceiling)
		cap = buffer->ceiling;
	uint8_t *data = cap < SIZE_MAX ? malloc(cap + 1) : NULL;
	if (data == NULL) {
		memory_note_refusal();
		return false;
	}
	if (buffer->data != NULL)
		memcpy(data, buffer->data, buffer->len);
	memory_wipe(buffer->data, buffer->dirty);
	free(buffer->data);
	buffer->data = data;
	buffer->cap = cap;
	buffer->dirty = buffer->len;
	return true;
}

uint8_t *buffer_reserve(struct buffer *buffer, size_t len)
{
	assert(buffer->len <= buffer->ceiling);
	if (buffer->failed)
		return NULL;
	if (len > buffer->ceiling - buffer->len) {
		buffer->failed = true;
		return NULL;
	}
	if (buffer->data == NULL || len > buffer->cap - buffer->len) {
		if (!grow(buffer, buffer->len + len)) {
			buffer->failed = buffer->starved = true;
			return NULL;
		}
	}
	if (buffer->dirty < buffer->len + len)
		buffer->dirty = buffer->len + len;
	return buffer->data + buffer->len;
}

void buffer_append(struct buffer *buffer, const void *data, size_t len)
{
	uint8_t *room = buffer_reserve(buffer, len);

	if (room == NULL || len == 0)
		return;
	memcpy(room, data, len);
	buffer->len += len;
}

void buffer_append_view(struct buffer *buffer, struct view view)
{
	buffer_append(buffer, view.data, view.len);
}

void buffer_append_text(struct buffer *buffer, const char *text)
{
	buffer_append(buffer, text, strlen(text));
}

void buffer_append_byte(struct buffer *buffer, uint8_t byte)
{
	buffer_append(buffer, &byte, 1);
}

void buffer_printf(struct buffer *buffer, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	int len = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (len < 0) {
		buffer->failed = true;
		return;
	}
	uint8_t *room = buffer_reserve(buffer, (size_t)len);
	if (room == NULL)
		return;
	va_start(args, fmt);
	vsnprintf((char *)room, (size_t)len + 1, fmt, args);
	va_end(args);
	buffer->len += (size_t)len;
}

bool buffer_failed(const struct buffer *buffer)
{
	return buffer->failed;
}

enum fate buffer_refused(const struct buffer *buffer, struct error *error, const char *fmt, ...)
{
	char text[sizeof(error->message)];
	va_list args;

	if (buffer->starved)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory");
	va_start(args, fmt);
	vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	return error_set(error, FATE_REJECT, ERR_TOO_LARGE, "%s", text);
}

struct view buffer_view(const struct buffer *buffer)
{
	static const uint8_t nothing[1];

	return (struct view){ buffer->data != NULL ? buffer->data : nothing, buffer->len };
}

void buffer_reset(struct buffer *buffer)
{
	memory_wipe(buffer->data, buffer->dirty);
	buffer->dirty = 0;
	buffer->len = 0;
	buffer->failed = buffer->starved = false;
}

void buffer_done(struct buffer *buffer)
{
	memory_wipe(buffer->data, buffer->dirty);
	free(buffer->data);
	*buffer = (struct buffer){ .ceiling = buffer->ceiling };
}

void memory_keep_little(void)
{
#ifdef __GLIBC__
	/* The values that it begins with: given by hand they stay. */
	(void)mallopt(M_MMAP_THRESHOLD, LARGE);
	(void)mallopt(M_TRIM_THRESHOLD, LARGE);
	(void)mallopt(M_TOP_PAD, LITTLE);
#endif
}

void memory_give_back(void)
{
#ifdef __GLIBC__
	(void)malloc_trim(0);
#endif
}

void memory_wipe(void *data, size_t len)
{
	if (data != NULL && len > 0)
		explicit_bzero(data, len);
}
