/*
 * letters_known.h - the dead letters that are there already. Who reads whole topics again meets the same bad records
 * again; a letter that the topic has is not sent a second time, and one that it has not is sent.
 */
#ifndef FERMATA_WORKER_LETTERS_KNOWN_H
#define FERMATA_WORKER_LETTERS_KNOWN_H

#include "config/config.h"
#include "worker/item.h"

#include <stdatomic.h>

struct letter_place; /* where the record of a letter stood */

struct letters_known {
	struct letter_place *places; /* sorted */
	size_t len;
	size_t cap;
	_Atomic int64_t found; /* bad records that had their letter */
	_Atomic int64_t sent;  /* bad records that had none */
};

/* letters_read.c. Reads the dead-letters topic up to where it ends now and keeps the places of the letters of both of intake's topics;
 * above sixteen million of them the rest is not known. stop (or NULL) is asked many times a second and ends it by
 * returning true: RETRY, ERR_STALE. RETRY: Kafka is away, or no memory. */
FM_MUSTCHECK enum fate letters_known_read(struct letters_known *letters, const struct config *config,
                                          bool (*stop)(void *context), void *context, struct error *error);
/* One of them, by hand; sort when all are there. RETRY: no memory. */
FM_MUSTCHECK enum fate letters_known_add(struct letters_known *letters, bool suspend, int32_t partition,
                                         int64_t offset, struct error *error);
void letters_known_sort(struct letters_known *letters);
bool letters_known_has(const struct letters_known *letters, bool suspend, int32_t partition, int64_t offset);
/* Marks the dead ones whose letter is there. letters may be NULL. */
void letters_known_mark(const struct letters_known *letters, struct item **items, size_t len);
/* A dead one has been dealt with. letters may be NULL. */
void letters_known_note(struct letters_known *letters, const struct item *item);
void letters_known_done(struct letters_known *letters);

#endif
