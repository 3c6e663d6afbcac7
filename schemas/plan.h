/*
 * plan.h - what a plan is made of. Private to this room.
 *
 * A node says what becomes of a value of one of the writer's types where one of the reader's is wanted; there
 * is one for each such pair that can meet, so nodes form circles where types do. A node is either filled in or
 * a dead end, which says why. All of it is fixed once the plan is made.
 */
#ifndef FERMATA_SCHEMAS_PLAN_H
#define FERMATA_SCHEMAS_PLAN_H

#include "schemas/migrate.h"

#include <jansson.h>

enum plan_op {
	PLAN_DEAD,
	PLAN_NULL,
	PLAN_BOOLEAN,
	PLAN_INTEGER, /* an int or long to an int or long */
	PLAN_INTEGER_TO_FLOAT,
	PLAN_INTEGER_TO_DOUBLE,
	PLAN_FLOAT,
	PLAN_FLOAT_TO_DOUBLE,
	PLAN_DOUBLE,
	PLAN_BYTES, /* bytes or a string as they are */
	PLAN_BYTES_TO_STRING,
	PLAN_FIXED,
	PLAN_ENUM,
	PLAN_RECORD,
	PLAN_ARRAY, /* or a map */
	PLAN_FROM_UNION,
	PLAN_TO_UNION,
};

/* Why a node is a dead end. */
enum plan_why {
	WHY_NOT,     /* it is none */
	WHY_TYPE,    /* the types do not match */
	WHY_NAME,    /* nor do the names */
	WHY_SIZE,    /* of a fixed */
	WHY_DECIMAL, /* precision or scale */
	WHY_BRANCH,  /* no branch of the reader's union */
	WHY_SYMBOLS, /* no symbol in common, no default */
	WHY_MISSING, /* a field without default that the writer has not */
	WHY_CLASH,   /* two fields of the writer come to it */
	WHY_ALIAS,   /* an alias of two fields of the reader */
	WHY_DEFAULT, /* the default is too large or too deep */
	WHY_ENDLESS, /* no value that ends can pass */
};

struct plan_node;

struct plan_child {
	struct plan_node *node;
	const char *name; /* the reader's field; NULL: a branch, an item */
};

/* What a record does, in this order. */
struct plan_step {
	enum { STEP_FIELD, STEP_DROP, STEP_BYTES } kind;
	const char *name;               /* FIELD, DROP: for the path */
	struct plan_node *node;         /* FIELD */
	const struct schema_type *drop; /* DROP: the writer's type */
	struct view bytes;              /* BYTES: defaults, encoded */
};

/* How the fields of a record are put in the reader's order, when it is not the writer's: a piece is the
 * output of the step of that position, or else bytes. */
struct plan_piece {
	size_t step; /* SIZE_MAX: bytes */
	struct view bytes;
};

/* One that must hear when a node is found dead, or alive. */
struct plan_user {
	struct plan_node *node;
	size_t child; /* position of the edge among the user's children */
	struct plan_user *next;
};

struct plan_node {
	enum plan_op op;
	enum plan_why why;
	const struct schema_type *writer;
	const struct schema_type *reader;
	struct plan_child *children; /* record: its fields; union: its branches; else one */
	size_t children_len;
	union {
		int32_t *symbols; /* ENUM: the reader's position of each of the writer's symbols; -1: none */
		size_t branch;    /* TO_UNION */
		struct {
			struct plan_step *steps;
			size_t steps_len;
			struct plan_piece *pieces; /* or NULL: the steps are in the reader's order */
			size_t pieces_len;
		} record;
	} as;
	const char *name; /* of what stands in the way: a field, when why needs one */
	/* plan_live.c */
	bool dead;  /* no value of the writer's passes; children[cause] (if there are any) is why */
	bool alive; /* some value passes */
	bool seen;  /* compat.c has been here */
	size_t cause;
	size_t pending;
	struct plan_user *users;
};

struct plan {
	const struct schema *writer;
	const struct schema *reader;
	struct arena *arena;
	struct plan_node *root;
	const char *name; /* of the reader's root, for messages */
};

/* An encoded default, made when it is first asked for. */
struct plan_default {
	enum { DEFAULT_NEW, DEFAULT_MAKING, DEFAULT_MADE, DEFAULT_FAILED } state;
	struct view bytes;
	unsigned depth; /* how deep its value is nested */
};

struct pair_slot {
	struct plan_node *node;
};

struct planner {
	struct plan *plan;
	struct arena *arena;
	struct error *error;
	struct plan_node **nodes; /* in the order in which they were made */
	size_t nodes_len, nodes_cap;
	struct pair_slot *pairs; /* hash table of them; its size is a power of two */
	size_t pairs_cap;
	size_t parts;                   /* nodes, edges and steps so far */
	size_t looks;                   /* comparisons so far */
	json_t **aliases;               /* by ordinal of the reader's records: alias -> position, -1: of two */
	struct plan_default *fallbacks; /* by ordinal of the reader's fields */
	struct buffer encoded;          /* a default while it is made */
	size_t fallback_bytes;          /* in all defaults */
	bool failed;                    /* the error says why */
};

/* plan.c */

/* The whole plan, even where no value passes: then it says why, and may not be run. error may not be NULL. */
FM_MUSTCHECK enum fate plan_make(struct plan **ret_plan, const struct schema *writer,
                                 const struct schema *reader, struct error *error);
/* The node of a pair; it is filled in later. NULL with the planner failed. */
struct plan_node *plan_node_for(struct planner *p, const struct schema_type *writer,
                                const struct schema_type *reader);
/* A dead end of its own, that no pair stands for. */
struct plan_node *plan_dead_end(struct planner *p, enum plan_why why, const struct schema_type *writer,
                                const struct schema_type *reader, const char *name);
/* Counts towards the limits: false with the planner failed. */
bool plan_count(struct planner *p, size_t parts, size_t looks);
/* The allocator said no: that ends the planning, and says nothing about the two schemas. */
void plan_no_memory(struct planner *p);
void *plan_alloc(struct planner *p, size_t count, size_t size);

/* plan_match.c */

/* Why the types themselves do not match, their parts aside; neither is a union. */
enum plan_why plan_match(struct planner *p, const struct schema_type *writer,
                         const struct schema_type *reader);
/* The branch of the reader's union for the writer's type, which is no union; -1: none. */
long plan_choose(struct planner *p, const struct schema_type *writer, const struct schema_type *reader);

/* plan_record.c */
void plan_fill_record(struct planner *p, struct plan_node *node);

/* plan_default.c: the default of the reader's field in binary; data NULL: it is too large or too deep. */
struct view plan_encode_default(struct planner *p, const struct schema_field *field);

/* plan_live.c */

/* Puts when at the end of the message, which is cut to make room. */
void plan_say_when(struct error *error, const char *when);
/* Marks the nodes; false with the planner failed. */
bool plan_mark(struct planner *p);
/* Why this node itself is a dead end. */
void plan_say_why(const struct plan_node *node, char *why, size_t cap);
/* Where and why below a dead node: appends to path (".field[].field") and fills why. */
void plan_explain(const struct plan_node *node, char *path, size_t path_cap, char *why, size_t why_cap);

#endif
