/*
 * tray.h - gate events, encoded, put where the relay of their shard finds them: what lies here in the version that the database
 * asks for need not be read there, opened and encoded again. Intake of this process puts those that it has just committed, the
 * relay itself those of resumes that it publishes without them.
 *
 * Nothing hangs on a tray. It may lose what it holds at any time, for all of it stands in the database; and what it gives
 * must be what the database has. So intake puts only what is committed, and clears the trays whenever it does not know that
 * any more. The relay puts before R4 and R5: whatever keeps R5 from being committed ends the term, and the end of a term
 * clears its tray. Nothing lies here for longer than TRAY_MS.
 *
 * One thread takes (the relay's), others put and clear.
 */
#ifndef FERMATA_WORKER_TRAY_H
#define FERMATA_WORKER_TRAY_H

#include "core/memory.h"
#include "store/store.h"

#include <pthread.h>

#define TRAY_MS        10000
#define TRAY_FRESH_MAX 8

/* A gate event as it is published. */
struct tray_event {
	struct uuid id;
	int64_t version;
	int64_t at;              /* us: of the change that it tells of */
	bool kept;               /* by the relay: of a resume of its own */
	struct view value;       /* encoded, framing and all */
	struct view traceparent; /* or null */
	struct view tracestate;  /* or null */
};

struct tray_entry;

struct tray {
	pthread_mutex_t mutex; /* of all that follows */
	void *by_id;           /* a tree (search.h) of the entries in the list */
	struct tray_entry *oldest;
	struct tray_entry *newest;
	struct tray_entry *taken; /* not in the list any more; the relay reads them */
	size_t bytes;             /* of all entries, taken ones too */
	size_t ceiling;
	uint64_t puts; /* how many so far */
	struct fresh fresh[TRAY_FRESH_MAX];
	size_t fresh_len; /* above TRAY_FRESH_MAX: more than could be noted */
};

/* ceiling: the most bytes that it ever holds. */
void tray_init(struct tray *tray, size_t ceiling);
/* Wipes and frees all that is there. Nobody may use it any more. */
void tray_done(struct tray *tray);

/* A copy is put there, in the place of what is there of that id. What there is no room or no memory for is left out: what
 * lies there longer is what a relay that is behind asks for next. */
void tray_put(struct tray *tray, const struct tray_event *event);
/* Nothing that lies there, or was noted, is given to anybody any more. */
void tray_clear(struct tray *tray);

/* What has been put so far is below that mark. */
uint64_t tray_mark(struct tray *tray);
/* The event of that id in just that version, or NULL. It is good until tray_wash, and not given again. An older
 * version that lies there is thrown away: the database does not go back to it. */
const struct tray_event *tray_take(struct tray *tray, const struct uuid *id, int64_t version);
/* Wipes and frees what was taken. */
void tray_wash(struct tray *tray);
/* Throws away what was put before that mark: the database does not ask for it. */
void tray_sweep(struct tray *tray, uint64_t mark);

/* It was decided, and that is committed: a relay that wakes to it may ask for it by name. */
void tray_note(struct tray *tray, const struct fresh *fresh);
/* What has been noted since this was asked last; none of it where it was too much, for then there is a backlog. */
size_t tray_noted(struct tray *tray, struct fresh ret_fresh[TRAY_FRESH_MAX]);

#endif
