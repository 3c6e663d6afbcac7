/*
 * frame.h - zstd inside of the seal. Each thread keeps one context for each direction: making them
 * anew costs 9 us a call, as much again as compressing 2 KiB does.
 *
 * A context holds pieces of what it worked on last until its next call. It never leaves the process
 * (core dumps are off), and zstd's stable interface knows no way to wipe it.
 */
#ifndef FERMATA_VAULT_FRAME_H
#define FERMATA_VAULT_FRAME_H

#include "core/memory.h"

/*
 * Compresses plain into out, which has room for cap bytes. Returns the length of the frame, or 0 when it
 * does not fit or there is no memory: the caller then keeps it as it is. Level 2: on sessions of chat and tools it takes 4 %
 * longer than 1 and leaves 5 % less at 32 KiB; 3 takes another 20 % for 1.5 %, and at 2 KiB for nothing.
 */
size_t frame_pack(struct view plain, uint8_t *out, size_t cap);

/*
 * Expands frame into exactly len bytes at out, and never writes more. RETRY (ERR_MEMORY) when there is no
 * memory; REJECT (ERR_TAMPERED) when it is no zstd or not exactly that long.
 */
FM_MUSTCHECK enum fate frame_unpack(struct view frame, uint8_t *out, size_t len, struct error *error);

/* Wipes and frees what the calling thread keeps; happens by itself when a thread other than main ends. */
void frame_done(void);

#endif
