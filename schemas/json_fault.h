/* json_fault.h - jansson's errors without jansson's texts, which quote what was read. Private to this room. */
#ifndef FERMATA_SCHEMAS_JSON_FAULT_H
#define FERMATA_SCHEMAS_JSON_FAULT_H

#include <jansson.h>

/* A few words for the code of a failed json_loadb. */
const char *json_fault(const json_error_t *error);

#endif
