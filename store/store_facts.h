/* store_facts.h - what `fermata doctor` asks the server: how durable it is, its clock, who works on it. */
#ifndef FERMATA_STORE_STORE_FACTS_H
#define FERMATA_STORE_STORE_FACTS_H

#include "store/store.h"

struct store_facts {
	int server_version; /* server_version_num: 150008 */
	bool fsync;
	bool full_page_writes;
	struct view synchronous_commit; /* of this session */
	int max_connections;
	int64_t clock; /* the server's, us */
};

/* Needs no tables. Texts live in the arena. */
FM_MUSTCHECK enum fate store_facts(struct store *store, struct arena *arena, struct store_facts *ret_facts,
                                   struct error *error);

/* The installation as its first worker wrote it; ret_group and ret_cluster are null views before that. The
 * database must be migrated. */
FM_MUSTCHECK enum fate store_installed(struct store *store, struct arena *arena, struct view *ret_group,
                                       struct view *ret_cluster, struct error *error);

#define STORE_MARK_CAP 17

/* What tells this installation from another one in the same group: text, from when its first worker started; empty
 * before that. A database that was restored keeps it. The database must be migrated. */
FM_MUSTCHECK enum fate store_installation_mark(struct store *store, char ret_mark[STORE_MARK_CAP],
                                               struct error *error);

/* The resumes topics as they were when they were first published to, by name; none before the first worker. The
 * database must be migrated. They live in the arena. */
FM_MUSTCHECK enum fate store_published_topics(struct store *store, struct arena *arena,
                                              struct resumes_topic **ret_topics, size_t *ret_len,
                                              struct error *error);

/* How many checkpoints wait for an operator, QUARANTINED and IN_DOUBT. Looks at all rows. The database must be
 * migrated. */
FM_MUSTCHECK enum fate store_set_aside(struct store *store, int64_t *ret_quarantined, int64_t *ret_in_doubt,
                                       struct error *error);

#endif
