/* store_hash.h - FNV-1a, 64 bits (Fowler, Noll, Vo; RFC 9923), of texts one after the other. */
#ifndef FERMATA_STORE_STORE_HASH_H
#define FERMATA_STORE_STORE_HASH_H

#include "core/memory.h"

#define HASH_START UINT64_C(0xcbf29ce484222325)

/* Goes on from `hash` with the length of the view and its bytes. */
uint64_t hash_view(uint64_t hash, struct view view);

#endif
