/* whole.h - a file, or stdin, read to its end. */
#ifndef FERMATA_CLI_WHOLE_H
#define FERMATA_CLI_WHOLE_H

#include "core/memory.h"

/* Appends what is in the file ("-": on stdin). REJECT ERR_NO: it has more than ceiling bytes; FATAL ERR_USAGE:
 * it cannot be opened or read. The error names the file. */
FM_MUSTCHECK enum fate whole_read(const char *path, size_t ceiling, struct buffer *out, struct error *error);

#endif
