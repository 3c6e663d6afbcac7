/*
 * One shard: two relays (either may be the zombie of the other), the broker with its transaction coordinator,
 * intake, and a database that is set back to an older snapshot without any connection noticing. README.md says
 * what is left out, and which switch takes which rule of the protocol away.
 */
#ifndef EPOCHS
#define EPOCHS 3 /* how often R1 may succeed, or the coordinator give up a transaction: the budget of faults */
#endif
#ifndef RESTORES
#define RESTORES 1
#endif
#define LOG  16
#define NONE 255

/* ---- Kafka: the partition, and the coordinator of its one transactional id ---- */

#define SKIPPED      0 /* a marker, or a record that was aborted: no reader sees it */
#define OPEN(d)      (1 + (d))
#define COMMITTED(d) (3 + (d))
#define NOTE_OPEN(d) (5 + (d)) /* LEDGER_TOPIC: a record of the ledger beside the resume */
#define NOTE(d)      (7 + (d))

byte entry[LOG]; /* by offset */
byte end;        /* the high watermark */
byte open;       /* records of the transaction under way: they are the last ones */
byte epoch;      /* of the transactional id; 0: none yet */
mtype = { IDLE, ONGOING, PREPARED };
mtype coordinator = IDLE; /* PREPARED: the commit is decided and answered, its marker is not written yet */
bit duplicate;            /* an EndTxn(commit) of this epoch is still on its way */

#define SAY printf /* a counterexample is told by these lines: tests/model/run --trace VARIANT */
#define STABLE (end - open) /* the last stable offset */

/* ---- PostgreSQL ---- */

#define UNDECIDED 0
#define DECIDED   1
#define RESUMED   2

byte state[2];
byte outbox;         /* one bit a checkpoint */
byte ledger = NONE;  /* ledger_offset.next; NONE: no row */
byte locked = NONE;  /* the row that intake's transaction under way holds */

byte old_state[2]; /* the snapshot that a restore goes back to; at first that of the empty database */
byte old_outbox;
byte old_ledger = NONE;
bit kept;      /* a later snapshot was taken */
byte restored; /* how often */

/* ---- what the laws are about ---- */

byte published[2]; /* what a read_committed reader has seen */
byte recorded;     /* one bit a checkpoint: a decision of it was committed once */
byte at_work;      /* the epoch of the relay that went past R2 last; 0: its term is over */

inline append(e)
{
	assert(end < LOG); /* else the bound is too small */
	entry[end] = e;
	end++
}

inline became_readable(d)
{
	SAY("      a resume of %d is readable\n", d);
	published[d]++;
	assert(published[d] <= 1);     /* L2, L8 */
	assert(recorded & (1 << (d))) /* L4 */
}

/* The marker goes to the log, and what is open becomes readable or not. */
inline write_marker(commits)
{
	SAY("broker: marker at %d, commit %d\n", end, commits);
	i = STABLE;
	do
	:: i < end ->
		if
		:: commits && (entry[i] == OPEN(0) || entry[i] == OPEN(1)) -> became_readable(entry[i] - OPEN(0))
		:: else
		fi;
		entry[i] = (commits -> entry[i] + 2 : SKIPPED);
		i++
	:: else -> break
	od;
	i = 0;
	open = 0;
	append(SKIPPED);
	coordinator = IDLE
}

active proctype broker()
{
	byte i;
	do
	:: d_step { coordinator == PREPARED -> write_marker(true) }
	/* EndTxn of the transaction before arrives once more, and commits what there is of this one */
	:: d_step { duplicate && coordinator == ONGOING ->
		SAY("broker: a late EndTxn(commit) arrives once more\n");
		duplicate = 0;
		coordinator = PREPARED
	   }
	/* transaction.timeout.ms; an epoch is left for who comes then */
	:: d_step { coordinator == ONGOING && epoch + 1 < EPOCHS ->
		SAY("broker: the transaction timed out\n");
		write_marker(false);
		epoch++;
		duplicate = 0
	   }
	od
}

/* ---- the database goes back ---- */

inline forget_snapshot()
{
	old_state[0] = UNDECIDED;
	old_state[1] = UNDECIDED;
	old_outbox = 0;
	old_ledger = NONE;
	kept = 0
}

active proctype operator()
{
	do
	:: d_step {
		!kept && restored < RESTORES && (ledger != NONE || state[0] != UNDECIDED || state[1] != UNDECIDED) ->
		SAY("database: a snapshot, ledger %d, states %d %d\n", ledger, state[0], state[1]);
		kept = 1;
		old_state[0] = state[0];
		old_state[1] = state[1];
		old_outbox = outbox;
		old_ledger = ledger
	   }
	:: d_step {
		restored < RESTORES && (ledger != old_ledger || state[0] != old_state[0] || state[1] != old_state[1]) ->
		SAY("database: goes back to ledger %d, states %d %d\n", old_ledger, old_state[0], old_state[1]);
		restored++;
		state[0] = old_state[0];
		state[1] = old_state[1];
		outbox = old_outbox;
		ledger = old_ledger;
		locked = NONE;
		forget_snapshot()
	   }
	od
}

/* Every resume below the ledger's position is known to the database: what R2 and R5 keep, and L2 hangs on. */
inline check_ledger()
{
	i = 0;
	do
	:: ledger != NONE && i < ledger ->
		assert(!(entry[i] == COMMITTED(0) && state[0] != RESUMED));
		assert(!(entry[i] == COMMITTED(1) && state[1] != RESUMED));
		i++
	:: else -> break
	od;
	i = 0
}
#ifdef INVARIANT
#define CHECK_LEDGER check_ledger()
#else
#define CHECK_LEDGER skip
#endif

/* ---- intake: decides what is not decided; after a restore once more, in any order ---- */

inline intake_transaction(d)
{
	d_step { state[d] == UNDECIDED && locked == NONE && (d == 0 || (recorded & 1)) ->
		SAY("intake: transaction that decides %d\n", d);
		locked = d
	};
	if
	:: d_step {
		locked == d ->
		SAY("intake: COMMIT of %d\n", d);
		state[d] = DECIDED;
		outbox = outbox | (1 << d);
		recorded = recorded | (1 << d);
		locked = NONE
	   }
	:: locked != d                                              /* a restore took it away */
	:: d_step { locked == d && epoch < EPOCHS -> SAY("intake: ROLLBACK of %d\n", d); locked = NONE }
	fi
}

active proctype intake()
{
	do
	:: intake_transaction(0)
	:: intake_transaction(1)
	od
}

/* ---- the relays ---- */

#define MAY_CRASH   (epoch < EPOCHS)
#define HAS(set, d) (((set) >> (d)) & 1)
#ifdef R3_BLIND
#define WAITS(d) HAS(outbox, d)
#else
#define WAITS(d) (HAS(outbox, d) && state[d] == DECIDED)
#endif
#ifdef LEDGER_TOPIC
#define FIRST NOTE(0)
#else
#define FIRST COMMITTED(0)
#endif
#define FOUND(e) ((e) == FIRST || (e) == FIRST + 1)
#define HERE (ledger == mine)
#ifdef NO_CAS
#define MINE true
#else
#define MINE HERE /* AND next = :mine */
#endif

/*
 * A batch of R2, of one resume: reads from `at` to the next one, but not past `limit` or the last stable offset;
 * marks it, takes it out of the outbox, moves the position. One transaction of PostgreSQL, or nothing.
 */
inline read_one(limit)
{
	d_step {
		d = NONE;
		do
		:: at < limit && at < STABLE && d == NONE ->
			if
			:: FOUND(entry[at]) -> d = entry[at] - FIRST
			:: else
			fi;
			at++
		:: else -> break
		od;
#if defined(DELETE_BEFORE) || defined(DELETE_WITH)
		seen = outbox /* the snapshot of the statement that deletes */
#endif
	};
	d == NONE || locked != d; /* the upsert waits for intake's lock */
	if
	:: MINE ->
		d_step {
			SAY("relay %d: R2 up to %d finds %d\n", _pid, at, d);
			if
			:: d != NONE ->
				state[d] = RESUMED;
#if defined(DELETE_BEFORE) || defined(DELETE_WITH)
				outbox = outbox & ~(seen & (1 << d));
				seen = 0;
#else
				outbox = outbox & ~(1 << d);
#endif
				d = NONE
			:: else
			fi;
			ledger = at;
			mine = at;
			CHECK_LEDGER
		}
	:: else -> goto over
	fi
}

inline produce(d)
{
#ifdef NON_TRANSACTIONAL
	atomic {
		if
		:: MAY_CRASH -> goto over
		:: d_step {
			true ->
			SAY("relay %d: produces %d at %d\n", _pid, d, end);
			append(COMMITTED(d));
			became_readable(d);
			last = end - 1
		   }
		fi
	};
#else
	/* AddPartitions goes with the first record; the broker takes later ones only into a transaction that is
	 * under way (KIP-890, its first part) */
	atomic {
		if
		:: MAY_CRASH -> goto over
		:: epoch != mine_epoch -> goto over
#ifdef GO_ON_AFTER_ABORT
		:: epoch == mine_epoch && begun && coordinator != ONGOING -> goto abort
		:: epoch == mine_epoch && begun && aborts < 2 -> aborts++; goto abort /* of any other kind */
#elif defined(OLD_BROKER) /* one that takes it all the same: it stands there open, in no transaction */
		:: d_step {
			epoch == mine_epoch && begun && coordinator != ONGOING ->
			SAY("relay %d: R4 produces %d at %d, into no transaction\n", _pid, d, end);
			append(OPEN(d));
			last = end - 1;
			open++
		   }
#else
		:: epoch == mine_epoch && begun && coordinator != ONGOING -> goto over
#endif
		:: d_step {
			epoch == mine_epoch && coordinator == (begun -> ONGOING : IDLE) ->
			SAY("relay %d: R4 produces %d at %d\n", _pid, d, end);
			coordinator = ONGOING;
			begun = 1;
			append(OPEN(d));
			last = end - 1;
			open++
		   }
		fi
	};
#ifdef LEDGER_TOPIC
	atomic {
		if
		:: epoch != mine_epoch || coordinator != ONGOING -> goto over
		:: else -> append(NOTE_OPEN(d)); last = end - 1; open++
		fi
	};
#endif
#endif
}

inline take()
{
	batch = WAITS(0) | (WAITS(1) << 1);
#ifdef PRODUCE_EARLY
	if :: locked != NONE -> batch = batch | (1 << locked) :: else fi
#endif
}
#ifdef PRODUCE_EARLY
#define WORK (WAITS(0) || WAITS(1) || locked != NONE)
#else
#define WORK (WAITS(0) || WAITS(1))
#endif

/* R5 finds each row as R3 took it, or nothing is marked. */
#ifdef R5_UPDATES_WHAT_IS_THERE
#define STILL(d) true
#else
#define STILL(d) (!HAS(batch, d) || WAITS(d))
#endif

inline mark_published(d)
{
	if
	:: HAS(batch, d) && WAITS(d) -> state[d] = RESUMED; outbox = outbox & ~(1 << d)
	:: else
	fi
}

#ifdef GO_ON_AFTER_ABORT
byte aborts;
#endif
#ifdef NO_R2_AFTER_RESTORE
#define LOST mine = ledger; batch = 0; last = NONE
#else
#define LOST goto over
#endif

proctype relay()
{
	byte i, d = NONE;
	byte mine_epoch, mine, until, at, batch, last = NONE;
	bit begun;
#if defined(TAKE_AHEAD) || defined(TAKE_BEFORE_R5)
	byte next;
#endif
#if defined(DELETE_BEFORE) || defined(DELETE_WITH)
	byte seen;
#endif

over: /* the term has ended, by a crash, an error or a lost answer: nothing of it is remembered */
	atomic {
		SAY("relay %d: no term\n", _pid);
		if
		:: at_work == mine_epoch -> at_work = 0
		:: else
		fi;
		mine_epoch = 0; mine = 0; until = 0; at = 0; batch = 0; last = NONE; begun = 0; d = NONE
#if defined(TAKE_AHEAD) || defined(TAKE_BEFORE_R5)
		; next = 0
#endif
	}
#ifdef LEDGER_BEFORE_INIT
	goto r2;
#endif
r1:
#ifdef NON_TRANSACTIONAL
	atomic { epoch < EPOCHS -> epoch++; mine_epoch = epoch; mine = ledger; at_work = epoch; goto r3 };
#endif
	atomic {
		epoch < EPOCHS && coordinator != PREPARED ->
		d_step {
			if
			:: coordinator == ONGOING -> write_marker(false)
			:: else
			fi;
			epoch++;
			SAY("relay %d: R1, epoch %d\n", _pid, epoch);
			duplicate = 0;
			mine_epoch = epoch
		}
	}
#ifdef LEDGER_BEFORE_INIT
	at_work = mine_epoch;
	goto r3;
#endif
r2:
	atomic {
		SAY("relay %d: R2 from ledger %d to %d\n", _pid, ledger, end);
		mine = ledger;
		at = (ledger == NONE -> 0 : ledger);
		until = end
	};
	do
	:: atomic {
		if
		:: MAY_CRASH -> goto over
		:: at >= until || at < STABLE ->
			read_one(until);
			if
			:: at >= until -> at = 0; until = 0; break
			:: else
			fi
		fi
	   }
	od;
#ifdef LEDGER_BEFORE_INIT
	goto r1;
#endif
	at_work = mine_epoch;
r3:
	do
	:: atomic { MAY_CRASH -> goto over }
	:: atomic { !HERE -> LOST }
	:: d_step { /* gate events alone: no record here, but an EndTxn */
		HERE && epoch == mine_epoch && coordinator == IDLE && !duplicate ->
		SAY("relay %d: a transaction of gate events, its EndTxn may come again\n", _pid);
		duplicate = 1
	   }
	:: atomic { HERE && WORK -> take(); SAY("relay %d: R3 takes the set %d\n", _pid, batch); break }
	:: atomic { HERE && !WORK && mine < STABLE -> at = mine; read_one(end); at = 0 } /* idle: reads on */
	od;
r4:
	if :: HAS(batch, 0) -> produce(0) :: else fi;
	if :: HAS(batch, 1) -> produce(1) :: else fi;
#ifdef PRODUCE_EARLY
	if
	:: (!HAS(batch, 0) || state[0] == DECIDED) && (!HAS(batch, 1) || state[1] == DECIDED)
	:: locked == NONE && ((HAS(batch, 0) && state[0] != DECIDED) || (HAS(batch, 1) && state[1] != DECIDED)) ->
		goto over /* intake's COMMIT failed: it is taken back */
	fi;
#endif
#ifndef NON_TRANSACTIONAL
	atomic {
		if
		:: MAY_CRASH -> goto over
		:: epoch != mine_epoch -> goto over
#ifdef GO_ON_AFTER_ABORT
		:: epoch == mine_epoch && aborts < 2 -> aborts++; goto abort
#endif
		:: epoch == mine_epoch ->
			SAY("relay %d: R4 EndTxn(commit)\n", _pid);
			if
			:: coordinator == ONGOING -> coordinator = PREPARED
			:: else /* a duplicate has committed it: the broker says yes */
			fi;
			if
			:: duplicate = 1
			:: duplicate == 0
			fi;
			begun = 0
		fi
	};
#endif
#if defined(TAKE_AHEAD) || defined(TAKE_BEFORE_R5)
	atomic {
		next = batch;
		take();
		SAY("relay %d: takes the set %d ahead\n", _pid, batch);
#ifdef TAKE_AHEAD
		batch = batch & ~next; /* without the ids in flight */
#endif
		i = batch; batch = next; next = i; i = 0
	};
#endif
r5:
	atomic {
		locked == NONE || !HAS(batch, locked) ->
		if
		:: MAY_CRASH -> goto over
		:: MINE && STILL(0) && STILL(1) ->
			d_step {
				SAY("relay %d: R5 marks the set %d, ledger %d\n", _pid, batch, last + 1);
				mark_published(0);
				mark_published(1);
				ledger = last + 1;
				mine = last + 1;
				batch = 0;
				last = NONE;
				CHECK_LEDGER
			}
		:: !(MINE && STILL(0) && STILL(1)) -> LOST
		fi
	};
#if defined(TAKE_AHEAD) || defined(TAKE_BEFORE_R5)
	atomic { batch = next; next = 0 };
	if
	:: batch != 0 -> goto r4
	:: else
	fi;
#endif
	goto r3;
#ifdef GO_ON_AFTER_ABORT
abort: /* whatever the broker answers to the abort, the rows are taken for not published */
	atomic {
		SAY("relay %d: aborts and goes on\n", _pid);
		if
		:: epoch == mine_epoch && coordinator == ONGOING -> d_step { write_marker(false) }
		:: else
		fi;
		begun = 0; batch = 0; last = NONE;
		goto r3
	}
#endif
}

init
{
	atomic { run relay(); run relay() };
	/* L3: all is quiet, and a relay is at work */
	timeout;
	if
	:: at_work != 0 && at_work == epoch ->
		assert(state[0] == RESUMED && published[0] == 1);
		assert(state[1] == RESUMED && published[1] == 1);
		assert(outbox == 0)
	:: else
	fi
}
