/* json_fault.h - jansson's errors without jansson's texts, which quote what was read. Private to this room. */
#ifndef FERMATA_SCHEMAS_JSON_FAULT_H
#define FERMATA_SCHEMAS_JSON_FAULT_H

#include "core/memory.h"

#include <jansson.h>
#include <stdbool.h>

/* A few words for the code of a failed json_loadb. */
const char *json_fault(const json_error_t *error);
/*
 * json_loadb of a text that is not null. Where there was no memory for it jansson says that the text is wrong, and now and
 * then leaves something out of a string and says nothing: then this gives NULL, and *ret_starved is true.
 */
json_t *json_take(struct view text, size_t flags, json_error_t *ret_error, bool *ret_starved);
/* What jansson allocates is counted from here on where it is refused (memory_refusals). Thread-safe; json_take does it. */
void json_count_refusals(void);

#endif
