/*
 * Refuted: approvals are consumed and resumes produced in one Kafka transaction, which moves the position too, and
 * PostgreSQL commits before it (-DBEFORE) or after it (-DAFTER). One checkpoint, required_approvals = 1, an approval
 * each from two people; one worker, which may die between any two steps. Both switches must fail.
 */
byte position;  /* in Kafka, moved by its transaction */
byte published;
bit decided;    /* in PostgreSQL */
byte crashes;

#define SAY printf

active proctype worker()
{
	byte at;
	bit counts;
	do
	:: position < 2 ->
		at = position;
		counts = !decided;
#ifdef BEFORE
		decided = 1;
		SAY("worker: approval %d, COMMIT in PostgreSQL\n", at);
		if
		:: crashes == 0 -> crashes = 1; SAY("worker: dies, its Kafka transaction is aborted\n"); goto next
		:: skip
		fi;
#endif
		d_step {
			position = at + 1;
			published = published + counts;
			SAY("worker: approval %d, commit in Kafka, resumes %d\n", at, published);
			assert(published <= 1) /* L2 */
		};
#ifdef AFTER
		if
		:: crashes == 0 -> crashes = 1; SAY("worker: dies, nothing is in PostgreSQL\n"); goto next
		:: skip
		fi;
		decided = 1;
#endif
next:
		skip
	:: position == 2 -> break
	od;
	assert(published == 1) /* L3 */
}
