/*
 * learn.h - what the worker's catalog of schemas is missing is looked for: in the folder and in PostgreSQL at
 * once, at the registry by a thread of its own, so that nobody else waits while it does not answer.
 *
 * Every schema that anything was sealed with, and every one that the folder or the registry ever gave, is kept in
 * fermata.schema_text: neither a registry that is away nor a file that is gone stops a resume.
 */
#ifndef FERMATA_WORKER_LEARN_H
#define FERMATA_WORKER_LEARN_H

#include "worker/worker.h"

struct schema_want; /* schemas/catalog.h */
struct catalog;

/* A command that runs once does not wait until somebody mends a file of schemas.path: FATAL ERR_USAGE names the first one
 * that cannot be used. */
FM_MUSTCHECK enum fate learn_refuse_broken(struct catalog *catalog, struct error *error);

/* Before the threads: worker->catalog with the folder, and the registry's client when one is configured.
 * FATAL ERR_USAGE: schemas.path cannot be read (or, for a command that runs once, a file of it cannot be used), or
 * settings of the registry do not go together. */
FM_MUSTCHECK enum fate learn_open(struct worker *worker, struct error *error);
void learn_close(struct worker *worker);

/* Steps of the start: our own schemas and those of the folder are kept; then, with a registry, the ids that
 * what we write is framed with (from PostgreSQL, else registered or looked up). */
FM_MUSTCHECK enum fate learn_keep_own(struct worker *worker, struct store *store, struct error *error);
FM_MUSTCHECK enum fate learn_own_ids(struct worker *worker, struct store *store, struct error *error);
/* The codec writes what goes to the topic with the registry's framing from now on; without one, nothing. */
void learn_write_ids(const struct worker *worker, struct codec *codec, const char *topic);

/* Follows the folder and asks the registry, until the worker stops. */
void *learn_thread(void *worker);
/* The worker is to stop: a question that is out at the registry is given up. */
void learn_interrupt(struct worker *worker);

/*
 * After a codec's fate of RETRY with ERR_UNKNOWN_SCHEMA: looks for what it wants. True: the codec may be called again.
 * False: *fate is the answer, and any other fate is left as it is. RETRY with ERR_UNKNOWN_SCHEMA then means that the
 * registry has been asked and has not answered yet: learn_count grows when there is news. tries counts the rounds and
 * begins at 0. The store must have no transaction open.
 */
FM_MUSTCHECK bool learn_more(struct worker *worker, struct store *store, const struct schema_want *want,
                             unsigned *tries, enum fate *fate, struct error *error);
uint64_t learn_count(const struct worker *worker);

/* Is the text of the schema kept already, as far as this process knows? */
bool learn_is_kept(const struct worker *worker, const uint8_t sha256[32]);
/* Makes sure that the text of a schema of the catalog is kept before something is sealed with it. */
FM_MUSTCHECK enum fate learn_keep_sealed(struct worker *worker, struct store *store, const uint8_t sha256[32],
                                         struct error *error);
/* With a registry: what a state that just went to sleep will need is asked for while nobody waits for it. */
void learn_ahead(struct worker *worker, const struct app_state *state);
/* Has the folder changed? Then it was read again, and what was refused may be tried again. */
bool learn_folder_changed(struct worker *worker);

#endif
