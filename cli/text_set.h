/* text_set.h - texts that were seen before. Grows with what is added; nothing is ever taken out. */
#ifndef FERMATA_CLI_TEXT_SET_H
#define FERMATA_CLI_TEXT_SET_H

#include "core/memory.h"

struct text_set {
	struct arena *arena;  /* of the texts */
	struct view *entries; /* open addressing; a power of two; a null view is a free place */
	size_t cap;
	size_t len;
};

/* FATAL: no memory. text_set_done in any case. */
FM_MUSTCHECK enum fate text_set_init(struct text_set *set, struct error *error);
bool text_set_has(const struct text_set *set, struct view text);
/* Copies it. *ret_new (may be NULL): it was not there. FATAL: no memory. */
FM_MUSTCHECK enum fate text_set_add(struct text_set *set, struct view text, bool *ret_new,
                                    struct error *error);
void text_set_done(struct text_set *set);

#endif
