/*
 * memory.h - the three ways to hold bytes: a view borrows, a buffer owns and grows up to a ceiling,
 * an arena owns everything of one batch and lets go of it at once.
 */
#ifndef FERMATA_CORE_MEMORY_H
#define FERMATA_CORE_MEMORY_H

#include "core/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Borrowed bytes. data == NULL means absent (a null of Avro); an empty string has data != NULL. */
struct view {
	const uint8_t *data;
	size_t len;
};

#define VIEW_NULL       ((struct view){ NULL, 0 })
#define VIEW_LITERAL(s) ((struct view){ (const uint8_t *)(s), sizeof(s) - 1 })

/* A view of a C string (without its NUL); NULL gives VIEW_NULL. Borrows. */
struct view view_of(const char *text);
bool view_is_null(struct view view);
bool view_equal(struct view a, struct view b);
bool view_equal_text(struct view a, const char *text);
/* memcmp order, shorter first when one is a prefix of the other; NULL before everything. */
int view_compare(struct view a, struct view b);
/* Are the bytes well-formed UTF-8 (RFC 3629: no surrogates, no overlong forms, up to U+10FFFF)? */
bool view_is_utf8(struct view view);
bool view_has_nul(struct view view);
/* The length (1 to 4) of the well-formed UTF-8 character that the view begins with; 0 when it is empty or
 * begins with none. */
size_t view_utf8_step(struct view view);

/*
 * Owned bytes that grow, never beyond ceiling. Failure is sticky: after an append that did not fit
 * (or malloc's no) every later append does nothing, and the caller asks buffer_failed once at the end.
 * buffer_done wipes what was held, so that plaintext may go through it.
 */
struct buffer {
	uint8_t *data;
	size_t len;
	size_t cap;
	size_t ceiling;
	size_t dirty; /* bytes from the start that something may have been written to */
	bool failed;
	bool starved; /* it failed because the allocator said no, not its ceiling */
};

void buffer_init(struct buffer *buffer, size_t ceiling);
void buffer_append(struct buffer *buffer, const void *data, size_t len);
void buffer_append_view(struct buffer *buffer, struct view view);
void buffer_append_text(struct buffer *buffer, const char *text);
void buffer_append_byte(struct buffer *buffer, uint8_t byte);
void buffer_printf(struct buffer *buffer, const char *fmt, ...) FM_PRINTF(2, 3);
/* Makes room for len more bytes and returns where they go (NULL when it does not fit); the caller
 * then adds what it wrote to buffer->len. */
uint8_t *buffer_reserve(struct buffer *buffer, size_t len);
bool buffer_failed(const struct buffer *buffer);
/* What to say of one that failed: REJECT, ERR_TOO_LARGE and the text when it was its ceiling; when it was the allocator,
 * RETRY and ERR_MEMORY, for what is to blame then is not what was written. */
enum fate buffer_refused(const struct buffer *buffer, struct error *error, const char *fmt, ...)
	FM_PRINTF(3, 4);
struct view buffer_view(const struct buffer *buffer);
/* Empties it and keeps the memory; the old bytes are wiped. */
void buffer_reset(struct buffer *buffer);
void buffer_done(struct buffer *buffer);

/* An arena: allocations that end together. Not thread-safe. Memory is wiped before it is freed. */
struct arena;

/* ceiling: the most bytes that it will ever hand out between resets. NULL when there is no memory. */
struct arena *arena_new(size_t ceiling);
void arena_free(struct arena *arena);
/* Takes everything back (and wipes it); keeps the first chunk for the next batch. */
void arena_reset(struct arena *arena);
/* Zeroed, aligned for any type; NULL when the ceiling or the allocator says no. len 0 is legal. */
void *arena_alloc(struct arena *arena, size_t len);
/* count * size, checked for overflow. */
void *arena_array(struct arena *arena, size_t count, size_t size);
/* Copies; the copy is followed by a NUL that is not counted. data == NULL only on failure: a null view
 * gives an empty one, so who keeps nulls apart looks before copying. */
struct view arena_copy(struct arena *arena, struct view view);
/* The view as a C string (cut at nothing: the caller has checked for U+0000). NULL on failure. */
char *arena_text(struct arena *arena, struct view view);
char *arena_printf(struct arena *arena, const char *fmt, ...) FM_PRINTF(2, 3);
size_t arena_used(const struct arena *arena);

/*
 * How often the allocator has said no in this process, to buffers, to arenas, and where memory_note_refusal was
 * called. Where "no memory" would be held against a record, this tells whether a ceiling was meant: compare with what
 * it was before. Thread-safe; another thread's count too.
 */
uint64_t memory_refusals(void);
void memory_note_refusal(void);

/* Overwrites with zeros in a way that the compiler keeps. */
void memory_wipe(void *data, size_t len);

/* From here on what is large goes back to the system when it is freed, and so does the free end of any thread's heap (nothing
 * but with glibc). Left alone, glibc takes the largest piece that was ever freed for the usual one and keeps as much and
 * twice as much at the end of every heap, and never less than 128 KiB there, where memory_give_back does not reach for any
 * thread's but main's. */
void memory_keep_little(void);

/* Gives back to the system what the allocator holds and nobody uses (glibc's malloc_trim; nothing elsewhere). Walks all
 * of the heap: for a moment at which nothing else is to be done. */
void memory_give_back(void);

#endif
