/*
 * reaper.h - the connections that are open, and the thread that shuts those which are too old: libmicrohttpd's
 * own timeout counts inactivity only, so that a byte a second would hold a connection for ever. Within http/.
 */
#ifndef FERMATA_HTTP_REAPER_H
#define FERMATA_HTTP_REAPER_H

#include "core/memory.h"

struct reaper;
struct reaper_entry;

/* At most max connections; headers_ms and connection_ms as in http_settings. Starts the thread. */
FM_MUSTCHECK enum fate reaper_open(struct reaper **ret_reaper, unsigned max, unsigned headers_ms,
                                   unsigned connection_ms, struct error *error);
/* Joins the thread. No connection is watched any more. */
void reaper_close(struct reaper *reaper);

/* From here the socket is watched, until reaper_leave, which must come before it is closed (else another
 * file with its number would be shut). NULL when more than max are there. */
struct reaper_entry *reaper_watch(struct reaper *reaper, int fd);
/* Its headers are there: from now on the deadline of the whole connection counts. */
void reaper_headers_done(struct reaper *reaper, struct reaper_entry *entry);
void reaper_leave(struct reaper *reaper, struct reaper_entry *entry);

#endif
