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
 * Asks, and tells the catalog: it learns, or is denied for ASK_DENY_MS. Afterwards the codec may be called
 * again; it either works or refuses. want->kind is not WANT_NOTHING.
 *
 * WANT_ID and WANT_GUID are asked for as such. States are those of the subject whose name is state_subject
 * with "{schema}" replaced by the want's name: its last version is the answer to WANT_READER, also when the
 * catalog has a reader already (a last version that cannot be used is a denial, which leaves that reader);
 * for WANT_STATE all its versions are read, and all are learnt. WANT_SHA256 and WANT_FINGERPRINT look
 * through the versions of record_subject. A subject that is NULL is a denial.
 *
 * OK: *ret_text is the answer, or the null view when it was denied; *ret_found is all that was seen, for
 * who keeps it. Both are in the arena, which needs room as for registry_versions. RETRY: the registry
 * cannot be reached, or no memory; nothing was denied.
 */
FM_MUSTCHECK enum fate registry_ask(struct registry *registry, struct catalog *catalog,
                                    const struct schema_want *want, const char *state_subject,
                                    const char *record_subject, struct arena *arena, struct view *ret_text,
                                    struct ask_found **ret_found, size_t *ret_found_len, struct error *error);

/* The name of a state's subject: pattern with every "{schema}" replaced by name. Appended to out. */
void ask_state_subject(const char *pattern, const char *name, struct buffer *out);

/*
 * The id that a text of our own has under the subject: it is registered there (or found), or with look_only only
 * looked up. RETRY: the registry cannot be reached. FATAL ERR_USAGE: it refuses, or it has no such schema.
 */
FM_MUSTCHECK enum fate ask_own_id(struct registry *registry, const char *subject, struct view text,
                                  bool look_only, int32_t *ret_id, struct error *error);

#endif
