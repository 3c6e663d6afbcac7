/* learn_inner.h - what the two halves of learning share. Private to this room. */
#ifndef FERMATA_WORKER_LEARN_INNER_H
#define FERMATA_WORKER_LEARN_INNER_H

#include "schemas/catalog.h"
#include "schemas/registry.h"
#include "worker/learn.h"
#include "worker/shelf.h"

#include <pthread.h>

#define LEARN_QUEUE 64   /* what is not asked for now is wanted again later */
#define LEARN_AHEAD 1024 /* states that were asked for ahead of time, by their hash */

/* What one of our records is framed with on one topic. */
struct written_id {
	const char *topic;
	enum record_type type;
	int32_t id;
};

struct learner {
	struct registry *registry; /* NULL: none. The start's, then the thread's */
	struct arena *arena;       /* of one answer of the registry */

	pthread_mutex_t mutex; /* of what follows */
	struct schema_want queue[LEARN_QUEUE];
	size_t queue_len;
	uint64_t ahead[LEARN_AHEAD];
	uint8_t (*kept)[32]; /* SHA-256 of those whose texts are known to be kept */
	size_t kept_len, kept_cap;

	_Atomic uint64_t count;        /* of news */
	_Atomic uint64_t folder_reads; /* how often the folder was read again, whoever saw that it had changed */
	_Atomic bool away;             /* the registry did not answer when it was last asked */
	struct written_id *ids;
	size_t ids_len;
};

/* The address that ids are kept under; NULL: no registry is configured. */
const char *learn_registry(const struct worker *worker);
/* Everything that the folder holds, likewise. */
FM_MUSTCHECK enum fate learn_keep_folder(struct worker *worker, struct store *store, struct error *error);
/* Has the folder changed? Then it was read again, its files that cannot be used are told, and whoever waits. As
 * catalog_folder. */
FM_MUSTCHECK enum fate learn_folder(struct worker *worker, bool *ret_changed, struct error *error);
/* Says in the log, in readiness and as a metric which files of the folder cannot be used. */
void learn_say_broken(struct worker *worker);
/* There is news: whoever waits tries again. */
void learn_tell(struct worker *worker);

#endif
