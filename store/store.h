/*
 * store.h - PostgreSQL. The only room that knows libpq; every statement has a name in here.
 *
 * A store is one connection and belongs to one thread. Every call may find the connection gone: then it
 * returns RETRY, and the next call connects again by itself (store_reconnects tells how often that has
 * happened, because a new connection may be one to an older database: protocol.md). What is loaded lives
 * in the arena that the call was given.
 *
 * SQLSTATE classes 08, 40, 53, 55, 57, 58, XX and 25006 are RETRY; 22, 23 and 54 are REJECT with
 * ERR_POISON; 42 and 3F are FATAL, anything else REJECT with ERR_POISON too. The caller of a failed
 * batch calls store_rollback and is then outside of any transaction.
 */
#ifndef FERMATA_STORE_STORE_H
#define FERMATA_STORE_STORE_H

/* native of the errors that a server which takes no writes is met with, when connecting and later. */
#define SQLSTATE_READ_ONLY "25006"

#include "core/policy.h"

struct store;

struct store_settings {
	const char *dsn;  /* libpq connection string, or NULL for libpq's own defaults */
	const char *name; /* application_name: "fermata intake"; NULL: "fermata" */
	bool prepared;    /* false behind an old pooler: statements are sent whole each time */
	bool steady; /* of a worker: each statement is planned once. Not for lists, whose wishes make the plan */
	int connect_timeout_s; /* 0: 10 */
};

/* Does not connect yet. FATAL: the DSN is not one. */
FM_MUSTCHECK enum fate store_open(struct store **ret_store, const struct store_settings *settings,
                                  struct error *error);
void store_close(struct store *store);
/* Connects if it is not connected. */
FM_MUSTCHECK enum fate store_connect(struct store *store, struct error *error);
/* How many connections were made so far. */
uint64_t store_reconnects(const struct store *store);
/* How often answers of the server were waited for, COPY aside. */
uint64_t store_round_trips(const struct store *store);
/* The socket to poll for notifications, -1 when there is no connection. */
int store_socket(const struct store *store);
/* Rolls back whatever is open. Drops the connection if that does not work. */
void store_rollback(struct store *store);

/* ---- the schema of the database ---- */

/* Brings the schema up to date under an advisory lock; safe to run twice and at once. *ret_from, *ret_to:
 * the versions before and after (0: there was none). FATAL: newer than this program. */
FM_MUSTCHECK enum fate store_migrate(struct store *store, int *ret_from, int *ret_to, struct error *error);
/* RETRY: not migrated yet (run `fermata migrate`); FATAL ERR_USAGE: newer than this program. */
FM_MUSTCHECK enum fate store_check_version(struct store *store, struct error *error);
/* Makes the payload partitions of `count` days from the day of `from_us` on (under an advisory lock). */
FM_MUSTCHECK enum fate store_payload_days(struct store *store, int64_t from_us, int count,
                                          struct error *error);

struct resumes_topic {
	struct view topic;
	int32_t partitions;
};

/* First start: writes group and cluster; later: FATAL ERR_USAGE when the group or the cluster is another
 * (adopt: the group is changed instead). Then adds the topics that are not known, and FATAL ERR_USAGE when
 * one has another partition count. Gives back all that are known, those of earlier configurations too. */
FM_MUSTCHECK enum fate store_installation(struct store *store, const char *group, const char *cluster_id,
                                          bool adopt, const struct resumes_topic *topics, size_t len,
                                          struct arena *arena, struct resumes_topic **ret_known,
                                          size_t *ret_len, struct error *error);

/* ---- positions of intake ---- */

enum position_waits { WAITS_NO, WAITS_ALARM, WAITS_REGISTRY, WAITS_BREAKER };

struct position {
	struct view topic;
	int32_t partition;
	int64_t next;
	bool has_last; /* the last record is known: */
	int64_t last_offset;
	int64_t last_timestamp; /* us */
	uint8_t last_digest[DIGEST_LEN];
	enum position_waits waits;
	int64_t let_through; /* an operator lets records below that offset through as dead letters; 0: none */
};

/* All rows of this cluster. */
FM_MUSTCHECK enum fate store_positions(struct store *store, const char *cluster_id, struct arena *arena,
                                       struct position **ret_positions, size_t *ret_len, struct error *error);
FM_MUSTCHECK enum fate store_position_waits(struct store *store, const char *cluster_id, const char *topic,
                                            int32_t partition, enum position_waits waits,
                                            struct error *error);

/* ---- a batch of intake: begin, write, commit ---- */

/* A move of a position: next from lo to hi, if it still is lo. lo == POSITION_NEW: there was no row. */
struct move {
	const char *topic;
	int32_t partition;
	int64_t lo;
	int64_t hi;
	bool has_last; /* else the old ones are kept (the move is over an end-of-partition only) */
	int64_t last_offset;
	int64_t last_timestamp;
	uint8_t last_digest[DIGEST_LEN];
};

#define POSITION_NEW (-1)

struct line {
	struct view tenant;
	struct view session_id;
	struct view gate_id;
};

struct batch_request {
	const char *cluster_id;
	const struct move *moves; /* sorted by topic, partition */
	size_t moves_len;
	const struct line *lines; /* of the suspends; sorted by session, gate, tenant, no doubles */
	size_t lines_len;
	const struct uuid *checkpoints; /* every id touched; sorted, no doubles */
	size_t checkpoints_len;
	const struct uuid *decisions; /* ids of the decisions in the batch; no doubles */
	size_t decisions_len;
	bool count_unclaimed;
	bool look_only; /* nothing is moved, locked or to be written: a read-only transaction */
};

/* Rows were purged: a record of the partition below that offset, appended up to that time, that has no row was
 * settled and purged. */
struct horizon {
	struct view topic;
	int32_t partition;
	int64_t below;
	int64_t until; /* us */
};

struct batch_loaded {
	bool stale;                 /* a move found no row: this worker's positions are not the database's */
	struct position *positions; /* all rows of the cluster, read after the moves in the same transaction */
	size_t positions_len;
	struct checkpoint **checkpoints; /* those that exist: the ids asked for and the open ones of the lines,
	                                  * all locked; sorted by id */
	size_t checkpoints_len;
	int64_t *highest;            /* for each line, its highest suspend_seq ever seen; 0: none */
	struct decision **decisions; /* those with the ids asked for, and all that are counted or waiting of the
	                              * checkpoints asked for; sorted by seq */
	size_t decisions_len;
	int64_t unclaimed; /* decisions that wait in all (the sum of unclaimed.decisions), when asked for */
	struct horizon *horizons; /* of the cluster */
	size_t horizons_len;
};

/*
 * BEGIN, the moves (compare-and-set, each a statement), advisory locks of the lines in order, the locks of
 * the rows in the order of their ids, then - in statements of their own, so that they see what the locks
 * waited for - lines, decisions, horizons and counts. On stale the rest is not filled and the caller rolls
 * back.
 */
FM_MUSTCHECK enum fate store_batch_begin(struct store *store, const struct batch_request *request,
                                         struct arena *arena, struct batch_loaded *ret_loaded,
                                         struct error *error);

/* What is to be written of one checkpoint. */
struct checkpoint_write {
	const struct checkpoint *checkpoint;
	bool insert;     /* else update */
	bool fill;       /* the columns of the suspend event and the payload (sealed.body) are written too */
	bool outbox;     /* put it into the outbox */
	bool gate_event; /* put (or raise) its row in gate_outbox to checkpoint->version */
	bool expiry_set; /* a row in expiry for checkpoint->expires_at */
	bool expiry_clear;
	int32_t unclaimed_add; /* > 0: its row in unclaimed is made (since = changed_at), or raised by so many */
	bool unclaimed_clear;
};

struct batch_write {
	struct checkpoint_write *checkpoints; /* sorted by id */
	size_t checkpoints_len;
	const struct decision *const *inserts; /* in the order of judging: seq grows in that order */
	size_t inserts_len;
	const struct decision *const *updates; /* outcome and outcome_reason of waiting ones */
	size_t updates_len;
	uint64_t
		notify;  /* NOTIFY fermata_outbox: store_shard_bit of each shard whose relay in another process is to
	                  * look; 0: nobody is told */
	bool singly; /* no COPY, which fails where a payload has outlived its checkpoint: for a second try */
};

/* RETRY with ERR_STALE: an insert found a row that another worker had made meanwhile: roll back and do the
 * batch again at once, singly. Nothing is visible to others before store_commit. */
FM_MUSTCHECK enum fate store_batch_write(struct store *store, const struct batch_write *write,
                                         struct error *error);
/* RETRY: the outcome is unknown; the positions tell. */
FM_MUSTCHECK enum fate store_commit(struct store *store, struct error *error);

/* ---- the relay ---- */

/* A shard of a ledger, and where this relay believes it stands. */
struct shard {
	const char *cluster_id;
	const char *topic;
	int32_t partition;
};

#define LEDGER_NONE (-1) /* there is no row */

/* What is not known of a ledger: whether what was decided before that time was published below that offset. */
struct doubt {
	int64_t before; /* us, or TIME_NONE: there is none */
	int64_t below;
};

#define NO_DOUBT ((struct doubt){ TIME_NONE, 0 })

struct ledger {
	int64_t next; /* or LEDGER_NONE */
	struct doubt doubt;
	uint8_t routes_digest[32]; /* under which it was read; zeros when there is no row */
};

FM_MUSTCHECK enum fate store_ledger(struct store *store, const struct shard *shard, struct ledger *ret_ledger,
                                    struct error *error);

/* A resume that was found in the ledger. */
struct ledger_found {
	struct uuid checkpoint_id;
	enum verdict verdict;
	const struct uuid *decisions;
	size_t decisions_len;
	int64_t appended_at;
	int64_t offset;
};

/*
 * R2, one batch: first every checkpoint found is upserted as RESUMED (sorted by id; published, from_ledger,
 * verdict, ledger_decisions; a gate event where a filled row's state changed), then, in statements of their
 * own, decisions that were judged before are made to agree with the resume (outcome), the outbox, expiry and
 * unclaimed rows go, then ledger_offset moves from mine to next by
 * compare-and-set (mine == LEDGER_NONE: the row is made). The doubt and the digest of the routes are
 * written too. One transaction, committed. *ret_new: how many were not RESUMED before. What lies below the
 * horizon of the ledger and has no row gets none: it was purged.
 * RETRY with ERR_STALE: the compare-and-set found another value.
 */
FM_MUSTCHECK enum fate store_ledger_advance(struct store *store, const struct shard *shard, int64_t mine,
                                            int64_t next, struct doubt doubt, const uint8_t routes_digest[32],
                                            const struct ledger_found *found, size_t len, size_t *ret_new,
                                            struct error *error);

/* The same rows without a ledger that moves: for who reads a part of it again. Beside a running relay it is as safe as
 * R2 itself. */
FM_MUSTCHECK enum fate store_ledger_mark(struct store *store, const struct shard *shard,
                                         const struct ledger_found *found, size_t len, size_t *ret_new,
                                         struct error *error);

/* What R3 does to rows whose publication cannot be known, many at once: those of the shard that the doubt is about, and
 * that no operator has settled it for, become IN_DOUBT with the reason and leave the outbox, at most `limit` of them; a write with the
 * compare-and-set of mine, committed. *ret_count below limit: there are no more. ERR_STALE as above. */
FM_MUSTCHECK enum fate store_ledger_doubt(struct store *store, const struct shard *shard, int64_t mine,
                                          struct doubt doubt, const char *reason, int64_t now, size_t limit,
                                          size_t *ret_count, struct error *error);

struct outbox_row {
	int64_t seq;
	struct checkpoint *checkpoint; /* with sealed.body */
	struct decision **decisions;   /* those that counted, in the order of judging, with their edits */
	size_t decisions_len;
	bool untold; /* nothing of it waits in gate_outbox, in the same snapshot */
};

struct gate_row {
	struct checkpoint
		*checkpoint;    /* with sealed.body when asked for and there; only its id when it was purged,
	                                * or handed over */
	int64_t version;    /* of gate_outbox when it was read */
	bool gone;          /* erased or purged: a tombstone is to be written */
	const void *handed; /* what the caller has of it already (struct handed), or NULL */
};

/* What the caller has of a gate event in just that version, and its bytes; or NULL: then it is read. */
typedef const void *store_handed(void *context, const struct uuid *id, int64_t version, size_t *ret_bytes);

/* A checkpoint that was decided just now. */
struct fresh {
	struct uuid id;
	int64_t appended_at; /* of its suspend record */
};

struct handed {
	store_handed *find;
	void *context;
	/* What is probably all that is to be resumed: where resumes may go alone, it is asked for together with its states, in one
	 * go. Where it is not all, or not there, nothing is lost but that one question. Empty: nobody knows. */
	const struct fresh *fresh;
	size_t fresh_len;
};

struct relay_take {
	struct ledger ledger;    /* read in the same snapshot as the rows */
	bool ready;              /* every partition of every topic in resumes_topic has a ledger_offset row that
	                       * carries today's digest of the routes; when false there are no outbox rows */
	struct outbox_row *rows; /* from the lowest seq; only DECIDED ones */
	size_t rows_len;
	struct gate_row *gates;
	size_t gates_len;
	bool more; /* there may be rows beyond these, or rows that were not looked at */
	bool lone; /* rows are all that waits in the outbox, and are few: gate events were not looked at */
};

/* What R3 is to take. */
struct relay_want {
	const uint8_t *routes_digest; /* 32 bytes, today's */
	const struct uuid *skip;      /* checkpoints that must wait (passed over) */
	size_t skip_len;
	size_t rows;  /* so many of each kind at most */
	size_t bytes; /* and about so many of sealed payloads in all, but at least one row */
	size_t
		lone; /* where the outbox has no more than so many rows, and one at least, gate events are left for another time */
	bool with_action;  /* load payloads for gate events */
	bool with_decided; /* take the gate events of what is DECIDED, too, which else go with its resume or
	                    * after it; for a time in which nothing is resumed */
	const struct handed *handed; /* or NULL */
};

/* R3. What it takes lies in arena. */
FM_MUSTCHECK enum fate store_relay_take(struct store *store, const struct shard *shard,
                                        const struct relay_want *want, struct arena *arena,
                                        struct relay_take *ret_take, struct error *error);

/* Queues the gate event of every checkpoint of the shard that is DECIDED and in the outbox, which intake leaves to the
 * resumes while these are published: for a relay that sees that they are not, once. Committed. */
FM_MUSTCHECK enum fate store_relay_tell(struct store *store, const struct shard *shard, struct error *error);

/* What R5 does about the row of gate_outbox. */
enum waiting {
	WAITING_GOES,  /* it was published: what waits there goes, unless it is newer */
	WAITING_NONE,  /* it was published, and R3 saw that nothing waits there */
	WAITING_COMES, /* of what is marked: it was not published, and waits there from now on */
};

/* A gate event, or (of what is marked) the version that RESUMED has. */
struct gate_sent {
	struct uuid checkpoint_id;
	int64_t version;
	enum waiting waiting;
};

/*
 * R5: marks `resumed` as RESUMED (published; version and changed_at as given), then deletes their outbox rows, then does
 * about gate_outbox what is said of each of `resumed` and of `gates` (others than those), then moves
 * ledger_offset from mine to next by compare-and-set (next == mine: only compared). One transaction, committed, without a
 * wait for the disk: what a crash takes of it, R2 finds in the ledger. ERR_STALE as above, and when one of `resumed` is
 * neither DECIDED nor erased: the database has gone back under the relay, and the ledger must not be moved past a resume
 * that is marked nowhere.
 */
FM_MUSTCHECK enum fate store_relay_mark(struct store *store, const struct shard *shard, int64_t mine,
                                        int64_t next, const struct gate_sent *resumed, size_t resumed_len,
                                        const struct gate_sent *gates, size_t gates_len, int64_t now,
                                        struct error *error);
/* Takes one out of the outbox with a reason (a write with the compare-and-set of mine, committed). */
FM_MUSTCHECK enum fate store_relay_set_aside(struct store *store, const struct shard *shard, int64_t mine,
                                             const struct uuid *checkpoint_id, enum gate_state state,
                                             const char *reason, int64_t now, struct error *error);

/* One of 64 bits for a shard. Shards may share one: whoever is told for nothing finds nothing. */
uint64_t store_shard_bit(struct view topic, int32_t partition);
#define STORE_ALL_SHARDS UINT64_MAX

/* LISTEN fermata_outbox on this connection, and the bits of those who were told since (never blocks): all of them when
 * that is not known, after a connection was lost or made. */
FM_MUSTCHECK enum fate store_listen(struct store *store, struct error *error);
uint64_t store_notified(struct store *store);

/* ---- the reaper ---- */

struct due {
	struct uuid checkpoint_id;
	int64_t expires_at;
	uint32_t refused; /* EXPIRE decisions of it that were refused */
	struct view session_id;
	uint8_t digest[DIGEST_LEN];
};

/* Claims rows with expires_at < before that were not sent since resend_before; SKIP LOCKED; sent_at = now.
 * In a transaction that stays open until store_commit or store_rollback. */
FM_MUSTCHECK enum fate store_expiry_claim(struct store *store, int64_t before, int64_t resend_before,
                                          int64_t now, size_t limit, struct arena *arena,
                                          struct due **ret_due, size_t *ret_len, struct error *error);
/* Earliest expires_at that waits, TIME_NONE when there is none. */
FM_MUSTCHECK enum fate store_expiry_next(struct store *store, int64_t *ret_expires_at, struct error *error);
/* UNCLAIMED rows older than before go, their decisions end refused, `no_suspend`. Committed. */
FM_MUSTCHECK enum fate store_unclaimed_sweep(struct store *store, int64_t before, size_t limit,
                                             size_t *ret_count, struct error *error);
/* For the gauges. */
FM_MUSTCHECK enum fate store_backlog(struct store *store, int64_t *ret_outbox, int64_t *ret_gates,
                                     int64_t *ret_unclaimed, struct error *error);
/* Rows in the outbox of one shard. */
FM_MUSTCHECK enum fate store_outbox_count(struct store *store, const char *topic, int32_t partition,
                                          int64_t *ret_count, struct error *error);

/* ---- what people ask ---- */

struct checkpoint_filter {
	const struct uuid *checkpoint_id; /* or NULL */
	struct view session_id;           /* null: any */
	struct view tenant;               /* null: any */
	struct view agent;                /* null: any */
	bool open_only;                   /* PENDING, and QUARANTINED without a verdict */
	bool waiting;                     /* PENDING, DECIDED, QUARANTINED or IN_DOUBT: not settled yet */
	bool has_state;
	enum gate_state state;
	size_t limit; /* 0: 1,000,000 */
};

/* Rows in the order in which Kafka got their suspends, oldest first, a page at a time; stops when each returns false. The arena is
 * used for one page and reset between pages. No transaction is open meanwhile: each may call the store. */
typedef bool store_each_checkpoint(void *context, const struct checkpoint *checkpoint);
FM_MUSTCHECK enum fate store_checkpoints(struct store *store, const struct checkpoint_filter *filter,
                                         struct arena *arena, store_each_checkpoint *each, void *context,
                                         struct error *error);
/* All decisions of a checkpoint in the order of judging. */
FM_MUSTCHECK enum fate store_decisions(struct store *store, const struct uuid *checkpoint_id,
                                       struct arena *arena, struct decision ***ret_decisions, size_t *ret_len,
                                       struct error *error);
/* Loads sealed.body of each, into the arena; the null view when it was purged. */
FM_MUSTCHECK enum fate store_payloads(struct store *store, struct checkpoint **checkpoints, size_t len,
                                      struct arena *arena, struct error *error);
/* Loads checkpoint->sealed.body; REJECT ERR_NO when it was purged. */
FM_MUSTCHECK enum fate store_payload(struct store *store, struct checkpoint *checkpoint, struct arena *arena,
                                     struct error *error);

#endif
