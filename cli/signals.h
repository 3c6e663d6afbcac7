/* signals.h - Ctrl-C and SIGTERM as the good end of a command that goes on for a while. */
#ifndef FERMATA_CLI_SIGNALS_H
#define FERMATA_CLI_SIGNALS_H

#include <stdbool.h>

/* From now on they are remembered, and end nothing by themselves. Calls that wait are not begun again after one. */
void signals_catch(void);
/* Has one come since signals_catch? */
bool signals_came(void);

#endif
