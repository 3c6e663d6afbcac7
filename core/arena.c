/*
 * arena.c - the arena of memory.h: a list of chunks, the newest in front, each handed out from its start.
 *
 * Invariants: what lies beyond chunk->used is zero, so that a new allocation needs no clearing; the last
 * chunk of the list is the one that arena_new made and that arena_reset keeps; arena->used counts the
 * bytes handed out with their alignment and never exceeds arena->ceiling.
 */
#include "core/memory.h"

#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Under AddressSanitizer a view that outlives its batch is caught at its first use. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_POISONS
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define ARENA_POISONS
#endif
#ifdef ARENA_POISONS
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(data, len)   ((void)(data), (void)(len))
#define ASAN_UNPOISON_MEMORY_REGION(data, len) ((void)(data), (void)(len))
#endif

#define CHUNK_FIRST ((size_t)16 * 1024)
#define CHUNK_MAX   ((size_t)1024 * 1024)

struct chunk {
	struct chunk *next;
	size_t cap;
	size_t used;
	alignas(max_align_t) uint8_t data[];
};

struct arena {
	size_t ceiling;
	size_t used;
	struct chunk *chunks;  /* all of them */
	struct chunk *current; /* the one with the most room left */
};

static struct chunk *chunk_new(size_t cap)
{
	if (cap > SIZE_MAX - sizeof(struct chunk))
		return NULL;
	struct chunk *chunk = calloc(1, sizeof(*chunk) + cap);
	if (chunk == NULL) {
		memory_note_refusal();
		return NULL;
	}
	chunk->cap = cap;
	ASAN_POISON_MEMORY_REGION(chunk->data, cap);
	return chunk;
}

static void chunk_wipe(struct chunk *chunk)
{
	ASAN_UNPOISON_MEMORY_REGION(chunk->data, chunk->cap);
	memory_wipe(chunk->data, chunk->used);
	chunk->used = 0;
}

struct arena *arena_new(size_t ceiling)
{
	struct arena *arena = calloc(1, sizeof(*arena));

	if (arena == NULL)
		return NULL;
	arena->ceiling = ceiling;
	arena->chunks = chunk_new(ceiling < CHUNK_FIRST ? ceiling : CHUNK_FIRST);
	arena->current = arena->chunks;
	if (arena->chunks == NULL) {
		free(arena);
		return NULL;
	}
	return arena;
}

/* Wipes and frees every chunk but the first one made. */
static void drop_newer(struct arena *arena)
{
	while (arena->chunks->next != NULL) {
		struct chunk *chunk = arena->chunks;
		arena->chunks = chunk->next;
		chunk_wipe(chunk);
		free(chunk);
	}
}

void arena_free(struct arena *arena)
{
	if (arena == NULL)
		return;
	drop_newer(arena);
	chunk_wipe(arena->chunks);
	free(arena->chunks);
	free(arena);
}

void arena_reset(struct arena *arena)
{
	drop_newer(arena);
	chunk_wipe(arena->chunks);
	ASAN_POISON_MEMORY_REGION(arena->chunks->data, arena->chunks->cap);
	arena->current = arena->chunks;
	arena->used = 0;
}

/* Chunks double up to CHUNK_MAX; what is larger than that gets a chunk of its own size. */
static struct chunk *add_chunk(struct arena *arena, size_t len)
{
	size_t cap = arena->chunks->cap < CHUNK_MAX / 2 ? arena->chunks->cap * 2 : CHUNK_MAX;

	if (cap < CHUNK_FIRST)
		cap = CHUNK_FIRST;
	struct chunk *chunk = chunk_new(len > cap ? len : cap);
	if (chunk == NULL)
		return NULL;
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	if (chunk->cap - len >= arena->current->cap - arena->current->used)
		arena->current = chunk;
	return chunk;
}

static void *take(struct arena *arena, size_t len, size_t align)
{
	struct chunk *chunk = arena->current;
	size_t gap = (align - chunk->used % align) % align;

	if (len > arena->ceiling - arena->used)
		return NULL;
	if (gap > chunk->cap - chunk->used || len > chunk->cap - chunk->used - gap) {
		chunk = add_chunk(arena, len);
		gap = 0;
	}
	if (chunk == NULL || gap + len > arena->ceiling - arena->used)
		return NULL;
	uint8_t *data = chunk->data + chunk->used + gap;
	ASAN_UNPOISON_MEMORY_REGION(data, len);
	chunk->used += gap + len;
	arena->used += gap + len;
	return data;
}

void *arena_alloc(struct arena *arena, size_t len)
{
	return take(arena, len, alignof(max_align_t));
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
	size_t len;

	if (__builtin_mul_overflow(count, size, &len))
		return NULL;
	return arena_alloc(arena, len);
}

struct view arena_copy(struct arena *arena, struct view view)
{
	if (view.len == SIZE_MAX)
		return VIEW_NULL;
	uint8_t *data = take(arena, view.len + 1, 1);
	if (data == NULL)
		return VIEW_NULL;
	if (view.len > 0)
		memcpy(data, view.data, view.len);
	return (struct view){ data, view.len };
}

char *arena_text(struct arena *arena, struct view view)
{
	struct view copy = arena_copy(arena, view);

	/* The copy is the arena's own memory: the const is only the view's. */
	return (char *)(uintptr_t)copy.data;
}

char *arena_printf(struct arena *arena, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	int len = vsnprintf(NULL, 0, fmt, args);
	va_end(args);
	if (len < 0)
		return NULL;
	char *text = take(arena, (size_t)len + 1, 1);
	if (text == NULL)
		return NULL;
	va_start(args, fmt);
	vsnprintf(text, (size_t)len + 1, fmt, args);
	va_end(args);
	return text;
}

size_t arena_used(const struct arena *arena)
{
	return arena->used;
}
