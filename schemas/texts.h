/* texts.h - the schemas of our own records as they stand in schemas/NAME.avsc, inside the program. */
#ifndef FERMATA_SCHEMAS_TEXTS_H
#define FERMATA_SCHEMAS_TEXTS_H

#include "core/memory.h"

#define SCHEMA_TEXTS 4

struct schema_text {
	const char *name; /* without namespace */
	struct view text;
};

/* In the order of enum record_type (codec.h). */
extern const struct schema_text schema_texts[SCHEMA_TEXTS];

#endif
