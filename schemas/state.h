/*
 * state.h - schemas from a folder (`schemas.path`), and what they are for: bringing an application's own state,
 * and records of other versions of Fermata, under the schema of today.
 *
 * NAME.avsc is what today's application reads, the *.avsc in the folder NAME are what older (or newer) ones
 * wrote; NAME is the full name of the state's schema (AppState.schema). NAME may be fermata.v1.SuspendEvent and the
 * other records: what reads those is in the program. Names that begin with a dot are passed over, links followed.
 *
 * What was loaded does not change any more and is for all threads; who wants the folder as it is now loads it
 * again and frees the old one when nobody uses it. Everything here may be called with states NULL: no schemas.
 */
#ifndef FERMATA_SCHEMAS_STATE_H
#define FERMATA_SCHEMAS_STATE_H

#include "core/records.h"

#define STATE_FROM_LEN 16 /* hex digits of a fingerprint */

struct states;

/* path "" gives *ret_states NULL. FATAL ERR_USAGE names the file: it cannot be read, is no schema, or has the
 * fingerprint of another schema; or there are too many files. */
FM_MUSTCHECK enum fate states_load(struct states **ret_states, const char *path, struct error *error);
void states_free(struct states *states);

/* Has the folder changed since it was loaded (names, sizes, times of its files)? True too when it cannot be
 * looked at now. */
bool states_stale(const struct states *states);

/* How many readers, and how many schemas in all. */
size_t states_readers(const struct states *states);
size_t states_schemas(const struct states *states);

/*
 * A state under the schema that its application reads today. Unchanged (its views borrow from in, *ret_from is the
 * null view) when it is not there, is JSON, has no reader here, or has the reader's fingerprint already. Else its
 * body, in the arena, is what the reader's schema makes of it, schema and fingerprint are the reader's, and
 * *ret_from is the fingerprint that it was written with, hex as in the single-object header
 * (ResumeEvent.migrated_from).
 *
 * REJECT (for quarantine; the message names fields and schemas of the folder, never content): ERR_INVALID, it is
 * JSON and is not, or the schemas do not resolve; ERR_MALFORMED, its bytes are not of its schema;
 * ERR_UNKNOWN_SCHEMA, nothing in the folder has its fingerprint: add the schema, load, and try again;
 * ERR_TOO_LARGE.
 */
FM_MUSTCHECK enum fate state_migrate(const struct states *states, const struct app_state *in,
                                     struct arena *arena, struct app_state *ret_state, struct view *ret_from,
                                     struct error *error);

#endif
