/* scratch.h - memory for plaintext on its way between zstd and the cipher; wiped when it goes out of scope. */
#ifndef FERMATA_VAULT_SCRATCH_H
#define FERMATA_VAULT_SCRATCH_H

#include "core/memory.h"

struct scratch {
	uint8_t *data;
	size_t len;
};

void scratch_done(struct scratch *scratch);
#define SCRATCH __attribute__((cleanup(scratch_done))) struct scratch

/* len >= 1 bytes. False when there is no memory. */
FM_MUSTCHECK bool scratch_init(struct scratch *scratch, size_t len);

#endif
