/* mask.h - how a secret is shown: "***" in its place. */
#ifndef FERMATA_CONFIG_MASK_H
#define FERMATA_CONFIG_MASK_H

#include "core/memory.h"

#define MASK "***"

/*
 * Appends a connection string without its passwords: those of the user part of a URI, of its parameters
 * password, sslpassword and oauth_client_secret (names percent-encoded or not), and of the same keys in
 * key=value form, quoted or not. What cannot be understood is masked rather than shown: a quote that is
 * not closed, '@' or '/' in a password that should have been percent-encoded.
 * After libpq's conninfo_uri_parse and conninfo_parse. The text is ASCII or UTF-8; it need not be valid.
 */
void mask_dsn(const char *dsn, struct buffer *out);

#endif
