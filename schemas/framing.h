/*
 * framing.h - what stands before the body of a Kafka value: how it says in which schema it is written.
 *
 * Taken and given: Avro's single-object encoding. Told apart, and refused for want of a registry: the
 * framing of Confluent's registry (00, schema id). Where a registry is configured one day, its framings
 * join enum framing, and framing_take gives the id in place of the fingerprint.
 */
#ifndef FERMATA_SCHEMAS_FRAMING_H
#define FERMATA_SCHEMAS_FRAMING_H

#include "core/memory.h"

#define FRAMING_SINGLE_OBJECT_LEN 10 /* C3 01, then the fingerprint, little-endian */

enum framing {
	FRAMING_SINGLE_OBJECT,
};

struct frame {
	enum framing framing;
	uint64_t fingerprint; /* CRC-64-AVRO of the writer's schema */
	struct view body;     /* borrows from the value: what follows the framing */
};

/* Takes the framing off. REJECT ERR_FRAMING: null, empty, none of the framings, cut off, or one that needs
 * a registry. Whether the fingerprint is known is for the caller to say. */
FM_MUSTCHECK enum fate framing_take(struct view value, struct frame *ret_frame, struct error *error);

/* Appends the single-object header. */
void framing_put(struct buffer *out, uint64_t fingerprint);

#endif
