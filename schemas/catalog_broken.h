/*
 * catalog_broken.h - files of the folder that cannot be used (no schema, not to be read, the fingerprint of another).
 * What might stand in one of them is not taken to be nowhere: it waits until the file is mended. Private to this room.
 */
#ifndef FERMATA_SCHEMAS_CATALOG_BROKEN_H
#define FERMATA_SCHEMAS_CATALOG_BROKEN_H

#include "schemas/catalog.h"

struct json_t;

struct broken_file {
	char *file; /* below the folder */
	char *name; /* NAME of NAME.avsc, or of the folder that it is in */
	char *why;
	bool reader;          /* NAME.avsc */
	bool opaque;          /* of a reader: which names besides NAME it reads cannot be told */
	struct json_t *names; /* else those, without what is before their last dot; or NULL */
};

struct broken {
	struct broken_file *files;
	size_t len, cap;
};

/* text: what is in the file, the null view when that is not known. False: no memory. */
FM_MUSTCHECK bool broken_add(struct broken *broken, const char *file, const char *name, bool reader,
                             struct view text, const char *why);
void broken_done(struct broken *broken);

/* The broken file that is to read states of that name; that may read them, by its root's name or an alias; in which the
 * answer to a want of what was written may stand (folder: as for catalog_find). NULL: there is none. */
const struct broken_file *broken_reader(const struct broken *broken, const char *name);
const struct broken_file *broken_claim(const struct broken *broken, const char *name);
const struct broken_file *broken_written(const struct broken *broken, const struct schema_want *want,
                                         const char *folder);

#endif
