/*
 * framing.h - what stands before the body of a Kafka value: how it says in which schema it is written.
 *
 * Avro's single-object encoding is taken always. Where a registry is configured, the framing of Confluent's
 * is taken too (00, schema id), and a value without framing whose Kafka header __value_schema_id says what
 * wrote it; where none is, both are told apart and refused.
 */
#ifndef FERMATA_SCHEMAS_FRAMING_H
#define FERMATA_SCHEMAS_FRAMING_H

#include "core/memory.h"

#define FRAMING_SINGLE_OBJECT_LEN 10 /* C3 01, then the fingerprint, little-endian */
#define FRAMING_CONFLUENT_LEN     5  /* 00, then the schema id, big-endian */
#define FRAMING_HEADER_NAME       "__value_schema_id"
#define FRAMING_GUID_LEN          16

enum framing {
	FRAMING_SINGLE_OBJECT,
	FRAMING_CONFLUENT_ID,
	FRAMING_HEADER_ID,   /* the header is 00 and the id, big-endian */
	FRAMING_HEADER_GUID, /* the header is 01 and a GUID */
};

struct frame {
	enum framing framing;
	uint64_t fingerprint;           /* of a single object: CRC-64-AVRO of the writer's schema */
	int32_t id;                     /* may be negative: then no registry has it */
	uint8_t guid[FRAMING_GUID_LEN]; /* in the order of its text */
	struct view body;               /* borrows from the value: what follows the framing */
};

/* Takes the framing off. REJECT ERR_FRAMING: null, empty, none of the framings, cut off, or one that needs
 * a registry. Whether the fingerprint is known is for the caller to say. */
FM_MUSTCHECK enum fate framing_take(struct view value, struct frame *ret_frame, struct error *error);

/* As framing_take where a registry is configured. header is the record's __value_schema_id, or the null
 * view; it is looked at only when the value has no framing of its own. REJECT ERR_FRAMING also: the header
 * is malformed. */
FM_MUSTCHECK enum fate framing_take_registry(struct view value, struct view header, struct frame *ret_frame,
                                             struct error *error);

/* Appends the single-object header. */
void framing_put(struct buffer *out, uint64_t fingerprint);
/* Appends Confluent's framing. */
void framing_put_id(struct buffer *out, int32_t id);

#endif
