/*
 * ask.h - a registry is asked for what a catalog is missing.
 */
#ifndef FERMATA_SCHEMAS_ASK_H
#define FERMATA_SCHEMAS_ASK_H

#include "schemas/catalog.h"
#include "schemas/registry.h"

#define ASK_DENY_MS 5000 /* how long "there is no such schema" is believed */

/* A schema that came with an answer, wanted or not: every version of a subject does. */
struct ask_found {
	struct view text;
	int32_t id; /* 0: not known */
};

/*
 * Asks, and tells the catalog: it learns, or is denied for ASK_DENY_MS. Afterwards the codec may be called again;
 * it either works or refuses.
 *
 * WANT_ID and WANT_GUID are asked for as such; for WANT_READER and WANT_STATE all versions of the subject are read
 * whose name is state_subject with "{schema}" replaced by the want's name (the last one is the reader); WANT_SHA256
 * and WANT_FINGERPRINT look through the versions of record_subject (may be NULL: denied).
 * *ret_found, in the arena, is all that was seen: for who keeps it. OK: the catalog knows more now, *ret_text is the
 * answer (the null view when it was denied). RETRY: the registry cannot be reached, and nothing was denied.
 */
FM_MUSTCHECK enum fate registry_ask(struct registry *registry, struct catalog *catalog,
                                    const struct schema_want *want, const char *state_subject,
                                    const char *record_subject, struct arena *arena, struct view *ret_text,
                                    struct ask_found **ret_found, size_t *ret_found_len, struct error *error);

#endif
