/*
 * json_scan.h - is this one JSON text by RFC 8259? Nothing is built and nothing is interpreted:
 * numbers of any size, doubled keys, lone surrogate escapes and \u0000 are all legal there and pass.
 * Whitespace around the value is allowed, the bytes must be UTF-8, the empty text is not JSON.
 */
#ifndef FERMATA_CORE_JSON_SCAN_H
#define FERMATA_CORE_JSON_SCAN_H

#include "core/memory.h"

#define JSON_SCAN_DEPTH_MAX 10000 /* one bit a level, on the stack */

FM_MUSTCHECK bool json_scan(struct view text);

#endif
