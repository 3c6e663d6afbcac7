/* moment.h - a time as a person gives it to an option: how long ago, or when. */
#ifndef FERMATA_CLI_MOMENT_H
#define FERMATA_CLI_MOMENT_H

#include "core/error.h"

#include <stdint.h>

/*
 * "90s", "15m", "2h", "3d", "1w": so long before now. "2026-11-30", "2026-11-30T06:45", "...:52", "...:52.123456",
 * a blank in the place of the T too; then Z or +01:00, else in the zone of the machine. Microseconds.
 * FATAL ERR_USAGE names the option.
 */
FM_MUSTCHECK enum fate moment_parse(const char *option, const char *text, int64_t now, int64_t *ret_us,
                                    struct error *error);

#endif
