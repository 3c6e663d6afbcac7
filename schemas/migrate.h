/*
 * migrate.h - bytes that were written under one schema become bytes of another: schema resolution of the
 * Avro specification 1.12, whole.
 *
 * A plan is made once for a pair of schemas and may then be run by many threads at once. It says at once
 * whether the pair can never work (plan_new: REJECT); a value that cannot pass a pair that other values pass
 * is refused when it comes (run: REJECT). Either message begins with the path of the field, in the reader's
 * names, never quotes a value, and ends in "(always)" or "(only this value)".
 *
 * Where the specification leaves something open:
 * - of a union of the reader's the branch is taken that has the writer's exact type or full name; else one
 *   whose alias is the full name, else one with the same unqualified name, else the first promotion;
 * - records, enums and fixed match when their unqualified names are equal or an alias of the reader's is the
 *   writer's full name; an alias without a dot is in the namespace of the type that has it;
 * - aliases of fields rewrite the writer's names, so two of them may swap fields, and what comes to one
 *   field from two is refused, as is an alias that two fields of the reader have;
 * - decimals match decimals of the same precision and scale; an array or map needs items that match even
 *   when it is empty; a default is that of the first branch that it fits.
 */
#ifndef FERMATA_SCHEMAS_MIGRATE_H
#define FERMATA_SCHEMAS_MIGRATE_H

#include "schemas/schema.h"

#define MIGRATE_VALUES_MAX  2000000             /* values in one datum, before and after */
#define MIGRATE_DEFAULT_MAX ((size_t)64 * 1024) /* bytes that the default of one field may take */

struct plan;

/* The plan borrows both schemas. REJECT ERR_INVALID: no value of the writer's can ever pass. */
FM_MUSTCHECK enum fate migrate_plan_new(struct plan **ret_plan, const struct schema *writer,
                                        const struct schema *reader, struct error *error);
void migrate_plan_free(struct plan *plan);

/*
 * Guards body against the writer's schema, appends it as the reader's schema has it, and guards that. On
 * failure out is as it was. REJECT ERR_MALFORMED: the bytes are not of the writer's schema; ERR_INVALID: this
 * value cannot pass; ERR_TOO_LARGE: it does not fit below out's ceiling or has too many values.
 */
FM_MUSTCHECK enum fate migrate_run(const struct plan *plan, struct view body, struct buffer *out,
                                   struct error *error);
/* The type of what migrate_run appends. */
const struct schema_type *migrate_reader(const struct plan *plan);

/*
 * Plans of pairs of texts, by the SHA-256 of each: the pairs last used, and those that can never work too.
 * For all threads.
 */
struct migrate_cache;

/* plans: how many are kept (at least one). */
FM_MUSTCHECK enum fate migrate_cache_new(struct migrate_cache **ret_cache, size_t plans, struct error *error);
/* Nobody may hold a plan of it any more. */
void migrate_cache_free(struct migrate_cache *cache);
/* The plan of the pair, made now when it is not there. Hold it as long as it is used, then let it go. REJECT:
 * one of the texts is no schema, or the pair can never work. */
FM_MUSTCHECK enum fate migrate_cache_hold(struct migrate_cache *cache, struct view writer, struct view reader,
                                          const struct plan **ret_plan, struct error *error);
/* The same for who has the digests at hand: to hash a long text takes longer than to migrate a body. */
struct migrate_text {
	struct view text;
	uint8_t sha256[32]; /* of text as it stands */
};
FM_MUSTCHECK enum fate migrate_cache_hold_digested(struct migrate_cache *cache,
                                                   const struct migrate_text *writer,
                                                   const struct migrate_text *reader,
                                                   const struct plan **ret_plan, struct error *error);
void migrate_cache_release(struct migrate_cache *cache, const struct plan *plan);

#endif
