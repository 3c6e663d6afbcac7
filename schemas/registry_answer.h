/*
 * registry_answer.h - what a registry says, understood: JSON of bodies in and out, nothing of HTTP. Private
 * to this room.
 *
 * RETRY ERR_SERVICE: the body is not what a registry says, so something else has answered in its place.
 * RETRY ERR_MEMORY: no room in the arena. Texts that are returned are in the arena.
 */
#ifndef FERMATA_SCHEMAS_REGISTRY_ANSWER_H
#define FERMATA_SCHEMAS_REGISTRY_ANSWER_H

#include "schemas/registry.h"

/* Copies text on one line, cut at a whole character to fit size (> 0) with its NUL; what is not UTF-8 ends
 * it. Returns the length. */
size_t put_line(struct view text, char *to, size_t size);

/* {"schema": ..., "id": ..., "version": ...}. REJECT ERR_UNKNOWN_SCHEMA: it cannot be used: another
 * schemaType than AVRO, with references, or no schema by schema_parse. */
FM_MUSTCHECK enum fate answer_schema(struct view body, struct arena *arena,
                                     struct registry_version *ret_version, struct error *error);
/* {"id": ...} */
FM_MUSTCHECK enum fate answer_id(struct view body, int32_t *ret_id, struct error *error);
/* A list of positive integers, or null: ascending, each once. REJECT ERR_TOO_LARGE: more than max. */
FM_MUSTCHECK enum fate answer_numbers(struct view body, size_t max, struct arena *arena,
                                      int32_t **ret_numbers, size_t *ret_len, struct error *error);
/* A list of texts, or null. REJECT ERR_TOO_LARGE: more than max. */
FM_MUSTCHECK enum fate answer_texts(struct view body, size_t max, struct arena *arena,
                                    struct view **ret_texts, size_t *ret_len, struct error *error);
/* {"is_compatible": ..., "messages": [...]} or with "reason". */
FM_MUSTCHECK enum fate answer_compatible(struct view body, struct arena *arena, bool *ret_compatible,
                                         struct view *ret_why, struct error *error);
/* {"compatibilityLevel": ...} or "compatibility". */
FM_MUSTCHECK enum fate answer_rule(struct view body, struct arena *arena, struct view *ret_rule,
                                   struct error *error);

/* What an error body says; all of it may be missing. */
struct refusal {
	bool json;         /* it is an object */
	int64_t code;      /* error_code; 0: none */
	char message[160]; /* one line, cut to fit; "" when there is none */
};

void answer_refusal(struct view body, struct refusal *ret_refusal);
/* Is it one of the codes by which a registry says that a subject, a version or a schema does not exist? */
bool refusal_is_absence(const struct refusal *refusal);

#define REFUSED_SUBJECT 40401 /* there is no such subject */

/* Appends {"schema": text}. REJECT ERR_INVALID: the text is not UTF-8; ERR_TOO_LARGE: above
 * SCHEMA_TEXT_MAX. */
FM_MUSTCHECK enum fate question_schema(struct view text, struct buffer *out, struct error *error);

/* Appends text as a segment of a path: everything but letters, digits and -._~ as %XX. */
void question_segment(struct view text, struct buffer *out);

#endif
