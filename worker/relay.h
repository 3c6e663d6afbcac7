/*
 * relay.h - one shard: takes decided checkpoints out of the outbox and publishes them, with the resumes
 * topic itself as the ledger of what has been published (protocol.md, "Relay"). Inside of the worker only.
 *
 * A term is one life of the transactional producer: R1 and R2, then R3, R4, R5 again and again. Whatever
 * goes wrong ends the term; nothing of it is believed afterwards.
 */
#ifndef FERMATA_WORKER_RELAY_H
#define FERMATA_WORKER_RELAY_H

#include "worker/tray.h"
#include "worker/worker.h"

enum relay_note_kind { NOTE_WAIT, NOTE_RESUME_TOO_LARGE, NOTE_GATE_TOO_LARGE };

/* Something about one checkpoint that outlives a term. */
struct relay_note {
	struct uuid id;
	enum relay_note_kind kind;
	int64_t until_ms; /* NOTE_WAIT: passed over until then (mono) */
	uint64_t news;    /* NOTE_WAIT: learn_count then; not passed over once it has grown */
	struct backoff backoff;
};

#define RELAY_NOTES_MAX 256

/* How far past a decision a ledger has to go on for a resume that it does not have to be in doubt, on a rebuild. */
#define RELAY_DOUBT_US INT64_C(60000000)

/* Why something is IN_DOUBT: R2 found either that the beginning of the ledger is gone, or, on a rebuild, that it goes on
 * more than a minute past the decision. */
#define RELAY_DOUBT                                                                                          \
	"its resume is not among those that the topic has, which go on past its decision or begin after it: "    \
	"whether it was published cannot be known"

/* What the broker found too large in one transaction. Records that left in one request are refused together,
 * so only one alone is sure to be it. */
struct relay_blame {
	size_t count;
	struct uuid id; /* of the last one */
};

/* One record of a transaction: what its delivery report is about. */
struct publication {
	struct uuid id;
	int64_t version;  /* of its gate event; for a resume the version that RESUMED gets */
	bool resume;      /* else a gate event */
	bool with_resume; /* the gate event that goes with a resume of the same transaction */
	bool tombstone;
	bool erased;          /* a tombstone of what was erased, not purged */
	bool handed;          /* a gate event that intake had encoded */
	bool kept;            /* one that this relay had, with its resume */
	enum waiting waiting; /* a resume: what R5 is to do about its gate event */
	struct view key;
	size_t value_at; /* place in relay->out */
	size_t value_len;
	const struct header *headers;
	size_t headers_len;
	int64_t decided_at; /* resumes only, for the latency histogram */
};

struct relay {
	struct worker *worker;
	char topic[256];
	int32_t partition;
	char transactional_id[512];
	char source[512]; /* the CloudEvents attribute of what it publishes */
	pthread_t thread;
	int wake_fd;
	uint64_t bit;            /* store_shard_bit */
	_Atomic bool held;       /* the group says that the shard is ours */
	_Atomic uint64_t spoken; /* how often it has said so */
	_Atomic bool ended;      /* the thread is to end */
	_Atomic bool ready;      /* past R2 */
	_Atomic bool
		urgent;      /* intake of this process has put something into the outbox since this was looked at */
	bool rebuilding; /* `fermata rebuild`: the row of its ledger goes on saying so when it has been read */

	struct tray tray; /* gate events that are encoded already; whoever starts the thread makes it */

	struct store *store;
	struct producer *producer;
	struct codec *codec;
	struct arena *taken;  /* of one R3 */
	struct arena *plain;  /* of one checkpoint while it is open */
	struct arena *ledger; /* of one batch of R2 */
	struct buffer out;    /* the encoded values of one transaction */
	struct buffer body;   /* one suspend body with a migrated state in it */
	struct publication *publications;
	size_t publications_len;
	size_t publications_cap;
	struct relay_note notes[RELAY_NOTES_MAX];
	size_t notes_len;
	size_t rows_max; /* how many rows the next transaction may have: fewer after one that was too large */
	size_t rows_end; /* up to where rows_max may grow again */
	struct relay_blame blame[2]; /* [0] gate events, [1] resumes of the transaction at hand */

	int64_t mine;             /* ledger_offset.next as this relay last read or wrote it */
	struct doubt doubt;       /* of ledger_offset, the same */
	int64_t reported;         /* the highest offset of a resume that was reported; -1: none */
	int64_t idle_read_ms;     /* mono: when the ledger is read on next while idle */
	int64_t gather_ms;        /* mono: not before then are rows taken again; 0: at once */
	int64_t gather_behind_ms; /* the same while intake is behind; 0: no difference */
	bool gather_all;          /* not even for what is urgent */
	int64_t
		gates_due_ms; /* mono: from then on resumes go alone no more, for gate events have waited; 0: none has */
	bool drained;     /* all that R3 found is published: it looks again when it is woken */
	bool cut;         /* not all that R3 took has been encoded */
	bool unready;     /* nothing is resumed: some other ledger has not been read yet */
	uint64_t listening;  /* the connection (store_reconnects) that listens */
	uint64_t connection; /* the connection that R2 of this term began on */
	struct backoff backoff;

	uint64_t spoken_when; /* `spoken` when this relay was fenced last */
	unsigned fenced;      /* how often since then, and since a quiet while */
	bool rival;           /* that often, that it is no relay of our group */
};

/* In the place of a digest of routes while a database that knew nothing of its ledger reads it. */
extern const uint8_t relay_rebuilding[32];

struct shard relay_shard(const struct relay *relay);
bool relay_stopping(const struct relay *relay);

/* ---- relay_ledger.c ---- */

/* R2: reads the ledger from where the database stands up to the high watermark of now. */
FM_MUSTCHECK enum fate relay_read_ledger(struct relay *relay, struct error *error);
/* While idle: reads on to the last stable offset, so that a quiet shard's position does not age. */
FM_MUSTCHECK enum fate relay_read_on(struct relay *relay, struct error *error);

/* ---- relay_encode.c ---- */

/* Opens, checks and encodes what was taken. Rows that cannot be are set aside (a write); rows that must
 * wait are noted. */
FM_MUSTCHECK enum fate relay_encode(struct relay *relay, const struct relay_take *take, struct error *error);
/* What was encoded last is over: its bytes, and the room for them. (An encode of nothing does that, too.) */
void relay_forget(struct relay *relay);

struct relay_note *relay_note_find(struct relay *relay, const struct uuid *id, enum relay_note_kind kind);
void relay_note_add(struct relay *relay, const struct uuid *id, enum relay_note_kind kind);

/* ---- relay_gather.c ---- */

/* A transaction costs the broker and the database something whatever is in it. Where records come by the dozen the
 * next transaction waits for more of them: this looks at one that has just been marked, which began with its R3 at
 * began_ms (mono) ... */
void relay_note_load(struct relay *relay, int64_t began_ms, const struct relay_take *rows);
/* ... and this waits, before the next R3. */
void relay_gather(struct relay *relay);

/* So few resumes go alone now: a transaction with one partition in it is over sooner. */
size_t relay_lone(const struct relay *relay);
/* What R3 has taken: did gate events stay behind? */
void relay_note_gates(struct relay *relay, const struct relay_take *rows);
/* How long a relay with nothing else to do may wait: most_ms, or until gate events that stayed behind are due. */
int relay_gates_wait(const struct relay *relay, int most_ms);

/* ---- relay.c ---- */

/* Puts a relay of zeros together: its shard, its name; the place is copied. */
void relay_init(struct relay *relay, struct worker *worker, const struct partition_at *place);
/* What it works with; close it whatever is returned. */
FM_MUSTCHECK enum fate relay_open(struct relay *relay, struct error *error);
void relay_close(struct relay *relay);
/* The beginning of a term: R1 and R2. */
FM_MUSTCHECK enum fate relay_begin(struct relay *relay, struct error *error);
void *relay_thread(void *relay);

#endif
