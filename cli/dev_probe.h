/* dev_probe.h - asks a worker on this machine whether it is ready. */
#ifndef FERMATA_CLI_DEV_PROBE_H
#define FERMATA_CLI_DEV_PROBE_H

#include <stdbool.h>

/* GET /ready on a port of 127.0.0.1: does it say 200? Waits a second at most. */
bool probe_ready(int port);

#endif
