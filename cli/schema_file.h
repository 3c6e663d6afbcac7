/* schema_file.h - an Avro schema out of a file. */
#ifndef FERMATA_CLI_SCHEMA_FILE_H
#define FERMATA_CLI_SCHEMA_FILE_H

#include "schemas/schema.h"

struct schema_file {
	const char *path; /* of the caller */
	struct buffer text;
	struct schema *schema;
	uint64_t fingerprint; /* CRC-64-AVRO */
};

/* path "-": stdin. REJECT: it is no schema; FATAL ERR_USAGE: it cannot be read. The error names the file.
 * schema_file_done in any case. */
FM_MUSTCHECK enum fate schema_file_load(const char *path, struct schema_file *ret_file, struct error *error);
void schema_file_done(struct schema_file *file);
/* The full name of its root; of one without a name its kind ("union"). Of the file. */
const char *schema_file_name(const struct schema_file *file);

#endif
