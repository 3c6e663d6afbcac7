/* address.h - "HOST:PORT" to a socket that listens. Within http/ only. */
#ifndef FERMATA_HTTP_ADDRESS_H
#define FERMATA_HTTP_ADDRESS_H

#include "core/memory.h"

/* Binds and listens (close-on-exec, non-blocking). HOST may be a name, an IPv4 address or an IPv6 address in
 * brackets; the first address that it resolves to is taken. The caller closes *ret_fd. */
FM_MUSTCHECK enum fate address_listen(const char *listen, int *ret_fd, struct error *error);

/* What a socket is bound to. */
uint16_t address_port(int fd);
bool address_is_loopback(int fd);

#endif
