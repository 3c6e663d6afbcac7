/*
 * What retention took from the ledger: two checkpoints, one relay, the times of brokers as ticks. README.md says
 * what is left out, and which switch takes which rule away.
 */
#define TICKS 4
#define NONE  255
#ifndef SKEW
#define SKEW 0 /* how far the clock of the approvals' broker may be ahead of that of the resumes' */
#endif
#ifndef SLACK
#define SLACK 0 /* added to doubt_before */
#endif
#ifndef RESTORES
#define RESTORES 1
#endif

/* What a resume out of doubt leaves in the row, and when R3 takes that for an answer to the doubt that there is. */
#if defined(PLAIN_FLAG)
#define ANSWER      1
#define ANSWERED(c) (settled[c] != NONE)
#elif defined(BY_TIME)
#define ANSWER      doubt_before
#define ANSWERED(c) (settled[c] != NONE && settled[c] >= doubt_before)
#elif defined(FORGETS)
#define ANSWER      0
#define ANSWERED(c) false
#else
#define ANSWER      ledger
#define ANSWERED(c) (settled[c] != NONE && settled[c] >= doubt_below)
#endif

#define UNDECIDED 0
#define DECIDED   1
#define RESUMED   2
#define IN_DOUBT  3

byte now = 1;
byte decided_at[2]; /* LogAppendTime of the decision in the approvals topic; 0: it has not come */
byte entry[2];      /* the resumes topic: which checkpoint, and when */
byte entry_at[2];
byte low, end;

byte state[2]; /* PostgreSQL */
byte ledger = NONE;
byte doubt_before;
byte doubt_below; /* the part of the log that the doubt is about: records below that offset */
byte settled[2] = NONE;
byte old_state[2];
byte old_ledger = NONE;
byte old_doubt, old_below;
byte old_settled[2] = NONE;
byte kept, restored;

byte cuts;             /* how many doubts there were */
byte asked[2] = NONE;  /* during which of them somebody was asked, and has answered, as far as the database knows */

byte published[2];
byte mine = NONE; /* of the relay */
bit read;         /* R2 was done in this term */

#define SAY printf

active proctype clock()
{
	do
	:: d_step { now < TICKS -> now++; SAY("it is %d\n", now) }
	:: d_step { low < end -> SAY("broker: record %d is gone\n", low); low++ }
	od
}

/* Somebody who knows what happened: `in-doubt resume` where it was not published, `in-doubt drop` where it was. */
inline settle(c)
{
	d_step {
		state[c] == IN_DOUBT ->
		if
		:: published[c] -> SAY("operator: drops %d\n", c); state[c] = RESUMED
		:: else -> SAY("operator: resumes %d\n", c); state[c] = DECIDED; settled[c] = ANSWER
		fi
	}
}

active proctype operator()
{
	do
	:: d_step {
		kept == restored && restored < RESTORES && ledger != NONE ->
		SAY("database: a snapshot\n");
		kept++;
		old_state[0] = state[0]; old_state[1] = state[1]; old_ledger = ledger; old_doubt = doubt_before;
		old_below = doubt_below; old_settled[0] = settled[0]; old_settled[1] = settled[1]
	   }
	:: d_step {
		restored < RESTORES ->
		SAY("database: goes back to ledger %d, states %d %d\n", old_ledger, old_state[0], old_state[1]);
		restored++;
		kept = restored;
		state[0] = old_state[0]; state[1] = old_state[1]; ledger = old_ledger; doubt_before = old_doubt;
		doubt_below = old_below; settled[0] = old_settled[0]; settled[1] = old_settled[1];
		asked[0] = NONE; asked[1] = NONE
	   }
#ifdef SETTLES
	:: settle(0)
	:: settle(1)
#endif
	od
}

inline decide(c)
{
	d_step {
		state[c] == UNDECIDED ->
		if
		:: decided_at[c] == 0 -> decided_at[c] = now + SKEW
		:: else
		fi;
		SAY("intake: decides %d, whose decision came at %d\n", c, decided_at[c]);
		state[c] = DECIDED
	}
}

active proctype intake()
{
	do
	:: decide(0)
	:: decide(1)
	od
}

/* A decision takes longer to its resume than a tick. */
#define LATER(c) (now > decided_at[c] - SKEW)

inline take(c)
{
	d_step {
		read && ledger == mine && state[c] == DECIDED && LATER(c) ->
		if
#ifndef NO_DOUBT
		:: decided_at[c] < doubt_before && !ANSWERED(c) ->
			SAY("relay: %d is in doubt\n", c);
			assert(asked[c] != cuts); /* L3: who was asked and has answered is not asked the same again */
			asked[c] = cuts;
			state[c] = IN_DOUBT
#else
		:: false
#endif
		:: else ->
			SAY("relay: publishes %d at %d\n", c, now);
			published[c]++;
			assert(published[c] <= 1); /* L2 */
			entry[end] = c;
			entry_at[end] = now;
			end++;
			state[c] = RESUMED;
			ledger = end;
			mine = end
		fi
	}
}

active proctype relay()
{
	byte at;
	do
	:: d_step {
		!read || ledger != mine ->
		at = (ledger == NONE || ledger < low -> low : ledger);
		if
		:: (ledger == NONE -> low > 0 : ledger < low) -> /* it was cut */
			doubt_before = (low < end -> entry_at[low] : now) + SLACK;
			doubt_below = low;
			cuts++
		:: else
		fi;
		SAY("relay: R2 from ledger %d, the log has %d to %d, doubt before %d\n", ledger, low, end, doubt_before);
		do
		:: at < end -> state[entry[at]] = RESUMED; at++
		:: else -> break
		od;
		at = 0;
		ledger = end;
		mine = end;
		read = 1
	   }
	:: take(0)
	:: take(1)
	od
}

init
{
	timeout;
	assert(now < TICKS || state[0] == RESUMED || state[0] == IN_DOUBT || decided_at[0] - SKEW == TICKS); /* L3 */
	assert(now < TICKS || state[1] == RESUMED || state[1] == IN_DOUBT || decided_at[1] - SKEW == TICKS)
}
