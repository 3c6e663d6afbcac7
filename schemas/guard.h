/*
 * guard.h - would a well-behaved decoder get through these bytes? Walks a body against its schema before
 * avro-c sees it, for avro-c believes what it is told: lengths, counts, indexes, depth.
 *
 * Refused, everywhere and with the path of the field: a varint over 10 bytes or 64 bits (an int: 5 bytes,
 * 32 bits), a length that is negative or more than what remains, a block count whose negation overflows
 * or whose items cannot fit, a block whose byte size is not the size of its items, a boolean that is
 * neither 0 nor 1, an index of a union or enum out of range, a string that is not UTF-8, nesting over 64,
 * bytes that are left over. Varints may be longer than they need to be, as the specification lets them.
 *
 * Paths look like "history[3].content"; entries of a map are counted as they come, config[0] is the value
 * and config[0].key the key: a message never quotes what it read. Allocates nothing; time is linear in the
 * length of the bytes and values_max, which also bounds items that take no bytes.
 */
#ifndef FERMATA_SCHEMAS_GUARD_H
#define FERMATA_SCHEMAS_GUARD_H

#include "schemas/schema.h"

#define GUARD_DEPTH_MAX 64

/* Every byte must belong to the value. name is the record's, for the message. More than values_max values
 * (scalars, records, arrays, maps; each counts one): REJECT ERR_TOO_LARGE. Else REJECT ERR_MALFORMED. */
FM_MUSTCHECK enum fate guard_check(const struct schema_type *type, const char *name, struct view body,
                                   size_t values_max, struct error *error);

/* As guard_check, but bytes may follow the value: *ret_len is where it ends. */
FM_MUSTCHECK enum fate guard_prefix(const struct schema_type *type, const char *name, struct view body,
                                    size_t values_max, size_t *ret_len, struct error *error);

/* As guard_check, of a record, and where each of its fields lies: ret_fields has room for all of them. */
FM_MUSTCHECK enum fate guard_fields(const struct schema_type *record, const char *name, struct view body,
                                    size_t values_max, struct view *ret_fields, struct error *error);

#endif
