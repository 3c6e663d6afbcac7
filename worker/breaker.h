/*
 * breaker.h - a circuit breaker: of the last records of a partition, how many became dead letters? When most of them
 * did, something is wrong that no letter mends (a schema that is not deployed, a sender of another version, a limit),
 * and the partition is better stopped than emptied into the dead letters. Counting only; nothing is read or sent here.
 */
#ifndef FERMATA_WORKER_BREAKER_H
#define FERMATA_WORKER_BREAKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* After it was tripped, so few records suffice to trip it again. */
#define BREAKER_LEAST 16

struct breaker {
	uint8_t *dead; /* a ring of `cap` bits; belongs to the caller */
	size_t cap;    /* 0: it never trips */
	size_t len;    /* how many of them mean something */
	size_t at;     /* where the next one goes */
	size_t bad;    /* how many of them are set */
	size_t least;  /* below so many records it does not trip */
};

/* Bytes of the ring for that many records. */
size_t breaker_bytes(size_t cap);
/* An empty window of `cap` records over a ring of breaker_bytes(cap) bytes. It has to be full before it trips. */
void breaker_init(struct breaker *breaker, uint8_t *ring, size_t cap);
/* Empty again; `least` records suffice from now on, until the window is full. */
void breaker_reset(struct breaker *breaker, size_t least);
/* One more record is dealt with for good. */
void breaker_add(struct breaker *breaker, bool dead);
/* Would it trip if these records, in order, were dealt with next? It does at a dead one that makes more than half of a
 * window dead. Changes nothing. */
bool breaker_trips(const struct breaker *breaker, const bool *dead, size_t len);

#endif
