/*
 * Two intakes, each of which may believe that every partition is its own; two partitions of suspends, two of
 * approvals; a relay that publishes once what is decided (relay.pml shows that it can) and marks what the ledger
 * holds; crashes, a replay, and a restore that no connection notices. README.md says what is left out, and which
 * switch takes which rule away.
 *
 * Checkpoint 0 and its later suspend, checkpoint 1, are of one line. All decisions are about checkpoint 0.
 */
#define NOBODY 255
#ifndef CRASHES
#define CRASHES 1
#endif
#ifndef RESTORES
#define RESTORES 1
#endif
#ifndef REPLAYS
#define REPLAYS 0
#endif

/* ---- what stands in the topics: how many records, and which decision at which place ---- */

#if defined(QUORUM) /* two approvals on two partitions */
#define LEN_S1 0
#define LEN_A0 1
#define LEN_A1 1
#define DECISION(p, at) (p - 2)
#define REJECTS(k) false
#define REQUIRED 2
#define DECISIONS 2
#elif defined(ORDER) /* an approval, a rejection, the approval once more */
#define LEN_S1 0
#define LEN_A0 3
#define LEN_A1 0
#define DECISION(p, at) (at == 1 -> 1 : 0)
#define REJECTS(k) (k == 1)
#define REQUIRED 1
#define DECISIONS 2
#elif defined(CROSS) /* an approval and a rejection on two partitions */
#define LEN_S1 0
#define LEN_A0 1
#define LEN_A1 1
#define DECISION(p, at) (p - 2)
#define REJECTS(k) (k == 1)
#define REQUIRED 1
#define DECISIONS 2
#else /* SUPERSEDE: a later suspend on another partition, and an approval of the first */
#define LEN_S1 1
#define LEN_A0 1
#define LEN_A1 0
#define DECISION(p, at) 0
#define REJECTS(k) false
#define REQUIRED 1
#define DECISIONS 1
#endif
#define LEN(p) (p == 0 -> 1 : (p == 1 -> LEN_S1 : (p == 2 -> LEN_A0 : LEN_A1)))

byte arrived[4]; /* by partition: 0 and 1 of suspends, 2 and 3 of approvals */

/* ---- PostgreSQL ---- */

#define NONE       0
#define UNCLAIMED  1
#define PENDING    2
#define DECIDED    3
#define RESUMED    4
#define SUPERSEDED 5

#define WAITING 1
#define COUNTED 2
#define REFUSED 3

byte next[4]; /* kafka_offset */
byte state[2];
bit filled[2];
bit rejected;    /* the verdict of checkpoint 0 once it has one */
bit from_ledger; /* of checkpoint 0 */
byte outcome[2];

byte old_next[4];
byte old_state[2];
bit old_filled[2];
bit old_rejected;
bit old_from_ledger;
byte old_outcome[2];
bit kept;

/* who holds what; gone with a restore or a crash */
byte position_lock[4] = NOBODY;
byte line_lock = NOBODY;
byte row_lock[2] = NOBODY;
bit alive[2]; /* the transaction of each intake is open */
#ifdef NEW_CONNECTION_CLOSES
bit broken[2]; /* the connection of each is gone with the database that went back */
#endif

byte restores, replays, crashes;

/* ---- Kafka: the ledger ---- */

bit published[2];
bit ledger_rejected;
byte ledger_decisions; /* one bit a decision that is named in the resume of checkpoint 0 */

/* ---- for the laws ---- */

bit withdrawn; /* checkpoint 0 was SUPERSEDED once, in this database or one that was lost */
byte seen[4];  /* of each intake (0, 1 of the first), how far it saw each partition of suspends */

#define SAY printf
#define SEEN(me, s) seen[me * 2 + s]

inline unlock(me)
{
	if :: position_lock[0] == me -> position_lock[0] = NOBODY :: else fi;
	if :: position_lock[1] == me -> position_lock[1] = NOBODY :: else fi;
	if :: position_lock[2] == me -> position_lock[2] = NOBODY :: else fi;
	if :: position_lock[3] == me -> position_lock[3] = NOBODY :: else fi;
	if :: line_lock == me -> line_lock = NOBODY :: else fi;
	if :: row_lock[0] == me -> row_lock[0] = NOBODY :: else fi;
	if :: row_lock[1] == me -> row_lock[1] = NOBODY :: else fi;
	alive[me] = 0
}

/* ---- agents and approvers ---- */

active proctype senders()
{
	do
	:: d_step { arrived[0] < LEN(0) -> arrived[0]++; SAY("topic: suspend of 0\n") }
	:: d_step { arrived[1] < LEN(1) -> arrived[1]++; SAY("topic: suspend of 1, which is later\n") }
	:: d_step { arrived[2] < LEN(2) -> arrived[2]++; SAY("topic: record %d of approvals 0\n", arrived[2] - 1) }
	:: d_step { arrived[3] < LEN(3) -> arrived[3]++; SAY("topic: record %d of approvals 1\n", arrived[3] - 1) }
	od
}

/* ---- the database goes back; the positions go back ---- */

/* A restore takes longer than a look, which is every 5 s: nothing that is lost by it was new to an intake. */
#ifdef FAST_FAILOVER
#define LOOKED true
#else
#define LOOKED (seen[0] == next[0] && seen[1] == next[1] && seen[2] == next[0] && seen[3] == next[1])
#endif
/* A decision that waits for its suspend in the snapshot is judged as soon as the suspend is read again, whatever
 * stands in partitions that are read later: see README.md, "What the models found". */
#ifdef EARLY_IN_SNAPSHOT
#define SNAPSHOT_MAY true
#else
#define SNAPSHOT_MAY (LEN(1) == 0 || outcome[0] != WAITING)
#endif
#define DIFFERS (next[0] != old_next[0] || next[1] != old_next[1] || next[2] != old_next[2] || next[3] != old_next[3])

#define keep(to, from) to[0] = from[0]; to[1] = from[1]

active proctype operator()
{
	do
	:: d_step {
		!kept && restores < RESTORES && DIFFERS && SNAPSHOT_MAY ->
		SAY("database: a snapshot\n");
		kept = 1;
		keep(old_next, next);
		old_next[2] = next[2];
		old_next[3] = next[3];
		keep(old_state, state);
		keep(old_filled, filled);
		keep(old_outcome, outcome);
		old_rejected = rejected;
		old_from_ledger = from_ledger
	   }
	:: d_step {
		restores < RESTORES && LOOKED && DIFFERS ->
		SAY("database: goes back, positions %d %d %d %d\n", old_next[0], old_next[1], old_next[2], old_next[3]);
		restores++;
		keep(next, old_next);
		next[2] = old_next[2];
		next[3] = old_next[3];
		keep(state, old_state);
		keep(filled, old_filled);
		keep(outcome, old_outcome);
		rejected = old_rejected;
		from_ledger = old_from_ledger;
		unlock(0);
		unlock(1);
#ifdef NEW_CONNECTION_CLOSES
		broken[0] = 1;
		broken[1] = 1;
#endif
		old_next[0] = 0; old_next[1] = 0; old_next[2] = 0; old_next[3] = 0;
		old_state[0] = 0; old_state[1] = 0;
		old_filled[0] = 0; old_filled[1] = 0;
		old_outcome[0] = 0; old_outcome[1] = 0;
		old_rejected = 0; old_from_ledger = 0; kept = 0
	   }
	:: d_step { /* all that was read is read again */
		replays < REPLAYS && LOOKED && position_lock[0] == NOBODY && position_lock[1] == NOBODY &&
		position_lock[2] == NOBODY && position_lock[3] == NOBODY &&
		(next[0] + next[1] + next[2] + next[3]) > 0 ->
		SAY("operator: all topics again from the start\n");
		replays++;
		next[0] = 0; next[1] = 0; next[2] = 0; next[3] = 0
	   }
	od
}

/* ---- the relay ---- */

#define IS_COUNTED(k) (outcome[k] == COUNTED)
#define APPROVALS ((IS_COUNTED(0) && !REJECTS(0)) + (IS_COUNTED(1) && !REJECTS(1)))
#define REJECTED  ((IS_COUNTED(0) && REJECTS(0)) || (IS_COUNTED(1) && REJECTS(1)))

inline mark(c)
{
	d_step {
		published[c] && state[c] != RESUMED && row_lock[c] == NOBODY ->
		SAY("relay: %d is marked\n", c);
#ifdef R2_SETS_OUTCOMES
		if
		:: c == 0 -> from_ledger = 1
		:: else
		fi;
#else
		if
		:: c == 0 && state[0] != DECIDED -> from_ledger = 1
		:: else
		fi;
#endif
		state[c] = RESUMED;
		if
		:: c == 0 -> rejected = ledger_rejected
		:: else
		fi;
#ifdef R2_SETS_OUTCOMES
		if
		:: c == 0 && outcome[0] != NONE && (outcome[0] != WAITING || filled[0]) ->
			outcome[0] = ((ledger_decisions & 1) -> COUNTED : REFUSED)
		:: else
		fi;
		if
		:: c == 0 && outcome[1] != NONE && (outcome[1] != WAITING || filled[0]) ->
			outcome[1] = ((ledger_decisions & 2) -> COUNTED : REFUSED)
		:: else
		fi
#endif
	}
}

active proctype relay()
{
	do
	:: d_step {
		state[0] == DECIDED && !published[0] ->
		SAY("relay: 0 is published, rejected %d\n", rejected);
		assert(rejected -> REJECTED : (APPROVALS >= REQUIRED)); /* L4 */
		assert(!withdrawn);                                     /* L8: what was withdrawn stays so */
		published[0] = 1;
		ledger_rejected = rejected;
		ledger_decisions = IS_COUNTED(0) + 2 * IS_COUNTED(1)
	   }
	:: mark(0)
	:: mark(1)
	od
}

/* ---- intake ---- */

/* Checkpoint 0 is PENDING, or the ledger speaks for it. */
inline judge(k)
{
	if
	:: from_ledger -> outcome[k] = (((ledger_decisions >> k) & 1) -> COUNTED : REFUSED)
	:: !from_ledger && state[0] != PENDING -> outcome[k] = REFUSED
	:: else ->
		outcome[k] = COUNTED;
		if
		:: REJECTS(k) -> state[0] = DECIDED; rejected = 1
#ifdef COUNT_IN_LOCKING_STATEMENT
		:: !REJECTS(k) && counted + 1 >= REQUIRED -> state[0] = DECIDED
#else
		:: !REJECTS(k) && APPROVALS >= REQUIRED -> state[0] = DECIDED
#endif
		:: else
		fi
	fi
}

inline take_decision(k)
{
	if
	:: outcome[k] != NONE -> skip /* a duplicate */
#ifdef TWO_TABLES
	:: outcome[k] == NONE ->
		if
		:: there -> judge(k)
		:: else -> outcome[k] = WAITING
		fi
#else
	:: outcome[k] == NONE && (state[0] == NONE || state[0] == UNCLAIMED) -> outcome[k] = WAITING; state[0] = UNCLAIMED
	:: else -> judge(k)
#endif
	fi
}

inline take_suspend(c)
{
	if
	:: filled[c] -> skip /* a duplicate */
	:: else ->
		filled[c] = 1;
		if
		:: state[c] == RESUMED -> skip
		:: c == 0 && state[c] != RESUMED -> state[c] = (outdated -> SUPERSEDED : PENDING)
		:: c == 1 && state[c] != RESUMED ->
			state[c] = PENDING;
			if
			:: older && state[0] == PENDING -> state[0] = SUPERSEDED
			:: else
			fi
		fi;
		if
		:: c == 0 && waiting && outcome[0] == WAITING -> judge(0)
		:: else
		fi;
		if
		:: c == 0 && waiting && outcome[1] == WAITING -> judge(1)
		:: else
		fi
	fi;
	if
	:: state[0] == SUPERSEDED -> withdrawn = 1
	:: else
	fi
}

/* Positions from the database. */
inline read_positions(me)
{
#ifndef NO_SEEN_CHECK
	if
	:: next[0] < SEEN(me, 0) || next[1] < SEEN(me, 1) -> approvals_open = 0; asked = 0
	:: else
	fi;
#endif
#ifdef NEW_CONNECTION_CLOSES
	if
	:: broken[me] -> approvals_open = 0; asked = 0; broken[me] = 0
	:: else
	fi;
#endif
#ifdef CLOSE_WHEN_OWN_WENT_BACK
	if
	:: next[0] < mine[0] || next[1] < mine[1] || next[2] < mine[2] || next[3] < mine[3] ->
		approvals_open = 0;
		asked = 0
	:: else
	fi;
#endif
	keep(mine, next);
	mine[2] = next[2];
	mine[3] = next[3];
	SEEN(me, 0) = next[0];
	SEEN(me, 1) = next[1]
}

#ifdef NEW_CONNECTION_CLOSES
#define BROKEN(me) broken[me]
#else
#define BROKEN(me) false
#endif
#define STALE(me) (BROKEN(me) || \
	next[0] != mine[0] || next[1] != mine[1] || next[2] != mine[2] || next[3] != mine[3] || \
	next[0] != SEEN(me, 0) || next[1] != SEEN(me, 1))

proctype intake(byte me)
{
	byte p;
	byte mine[4]; /* what it last read or wrote */
	byte target[2];
	bit asked, approvals_open;
	bit outdated, older, waiting, was_there;
#ifdef COUNT_IN_LOCKING_STATEMENT
	byte counted;
#endif
#ifdef TWO_TABLES
	bit there;
#endif

idle:
	do
	:: d_step { /* a look, every 5 s, or a restart */
		STALE(me) -> SAY("intake %d: reads the positions\n", me); read_positions(me)
	   }
	:: d_step { !asked -> asked = 1; target[0] = arrived[0]; target[1] = arrived[1] }
#ifdef NO_WAIT_FOR_SUSPENDS
	:: d_step { !approvals_open -> approvals_open = 1 }
#else
	:: d_step {
		asked && !approvals_open && next[0] >= target[0] && next[1] >= target[1] && !STALE(me) ->
		SAY("intake %d: approvals are open\n", me);
		approvals_open = 1;
		target[0] = 0;
		target[1] = 0
	   }
#endif
	:: atomic { mine[0] < arrived[0] -> p = 0; break }
	:: atomic { mine[1] < arrived[1] -> p = 1; break }
	:: atomic { approvals_open && mine[2] < arrived[2] -> p = 2; break }
	:: atomic { approvals_open && mine[3] < arrived[3] -> p = 3; break }
	od;

	/* BEGIN; the positions move by compare-and-set; those of suspends are looked at */
	atomic {
		position_lock[p] == NOBODY || BROKEN(me);
		if
		:: BROKEN(me) -> d_step { read_positions(me); p = 0 }; goto idle
		:: else
		fi;
#ifndef NO_POSITION_CAS
		if
		:: next[p] != mine[p] -> SAY("intake %d: stale\n", me); d_step { read_positions(me); p = 0 }; goto idle
		:: else
		fi;
#endif
		SAY("intake %d: begins with partition %d at %d\n", me, p, mine[p]);
#ifdef POSITION_AHEAD
		next[p] = mine[p] + 1;
#endif
		position_lock[p] = me;
		alive[me] = 1;
#ifndef NO_SEEN_CHECK
#ifndef LOOK_AFTER_LOCKS
		if
		:: p > 1 && (next[0] < SEEN(me, 0) || next[1] < SEEN(me, 1)) ->
			d_step { unlock(me); read_positions(me); p = 0 };
			goto idle
		:: p > 1 && !(next[0] < SEEN(me, 0) || next[1] < SEEN(me, 1)) ->
			SEEN(me, 0) = next[0];
			SEEN(me, 1) = next[1]
		:: else
		fi;
#endif
#endif
#ifdef COUNT_IN_LOCKING_STATEMENT
		counted = APPROVALS;
#endif
#ifdef TWO_TABLES
		there = filled[0];
		waiting = outcome[0] == WAITING || outcome[1] == WAITING;
#endif
	};

	/* the locks, and what is read under them */
locks:
	atomic {
		!alive[me] || ((p > 1 || line_lock == NOBODY || line_lock == me) &&
			(row_lock[0] == NOBODY || row_lock[0] == me) &&
			(p != 1 || row_lock[1] == NOBODY || row_lock[1] == me));
		if
		:: !alive[me] -> goto lost
		:: else
		fi;
		d_step {
#ifndef NO_LINE_LOCK
			if
			:: p <= 1 -> line_lock = me
			:: else
			fi;
#endif
#ifndef TWO_TABLES
			was_there = state[(p == 1 -> 1 : 0)] != NONE;
			if
			:: p != 1 && state[0] != NONE -> row_lock[0] = me
			:: p == 1 && state[1] != NONE -> row_lock[1] = me
			:: else
			fi;
			older = p == 1 && state[0] == PENDING;
			if
			:: older -> row_lock[0] = me
			:: else
			fi;
			outdated = p == 0 && filled[1];
			waiting = 1
#endif
		}
#ifdef LOOK_AFTER_LOCKS
		if
		:: p > 1 && (next[0] < SEEN(me, 0) || next[1] < SEEN(me, 1)) ->
			d_step { unlock(me); read_positions(me); p = 0; older = 0; outdated = 0; waiting = 0; was_there = 0 };
			goto idle
		:: p > 1 && !(next[0] < SEEN(me, 0) || next[1] < SEEN(me, 1)) ->
			SEEN(me, 0) = next[0];
			SEEN(me, 1) = next[1]
		:: else
		fi
#endif
	};

	/* judged, written, COMMIT */
	atomic {
		if
		:: crashes < CRASHES ->
			SAY("intake %d: dies, and starts again\n", me);
			d_step {
				crashes++;
				unlock(me);
				asked = 0;
				approvals_open = 0;
				read_positions(me)
			};
			goto lost
		:: !alive[me] -> goto lost
#ifndef TWO_TABLES
		:: alive[me] && !was_there && state[(p == 1 -> 1 : 0)] != NONE ->
			goto locks /* another worker made the row meanwhile: the batch again */
#endif
		:: else
		fi;
		d_step {
			if
			:: p <= 1 -> take_suspend(p)
			:: else -> take_decision(DECISION(p, mine[p]))
			fi;
			mine[p] = mine[p] + 1;
			next[p] = mine[p];
			if
			:: p <= 1 && mine[p] > SEEN(me, p) -> SEEN(me, p) = mine[p]
			:: else
			fi;
			unlock(me);
			assert(!(state[0] == PENDING && filled[1])); /* a line has one open end */
			SAY("intake %d: COMMIT, partition %d at %d; 0 is in state %d, 1 in %d\n",
				me, p, next[p], state[0], state[1])
		}
	};
lost:
	atomic {
		p = 0; older = 0; outdated = 0; waiting = 0; was_there = 0;
#ifdef COUNT_IN_LOCKING_STATEMENT
		counted = 0;
#endif
#ifdef TWO_TABLES
		there = 0;
#endif
		goto idle
	}
}

init
{
	atomic { run intake(0); run intake(1) };
	timeout;
	/* L1, L5, L6: every record was taken, every decision has its outcome */
	assert(next[0] == LEN(0) && next[1] == LEN(1) && next[2] == LEN(2) && next[3] == LEN(3));
	assert(outcome[0] == COUNTED || outcome[0] == REFUSED);
	assert(DECISIONS < 2 || outcome[1] == COUNTED || outcome[1] == REFUSED);
	assert(filled[0]);
	/* L3: decided is resumed */
	assert(state[0] != DECIDED);
#if defined(QUORUM) || defined(ORDER) || defined(CROSS)
	assert(state[0] == RESUMED && published[0]); /* L5: whatever came first */
#else
	assert(state[0] == RESUMED || state[0] == SUPERSEDED);
	assert(state[1] == PENDING);
	assert(state[0] != RESUMED || published[0])
#endif
#ifdef QUORUM
	assert(outcome[0] == COUNTED && outcome[1] == COUNTED);
#endif
#ifdef ORDER
	assert(!ledger_rejected && outcome[0] == COUNTED && outcome[1] == REFUSED); /* L6 */
#endif
#ifdef OUTCOMES
	/* what the database says of the decisions is what the resume says */
	assert(!published[0] || IS_COUNTED(0) == (ledger_decisions & 1));
	assert(!published[0] || IS_COUNTED(1) == (ledger_decisions >> 1))
#endif
}
