/* vault_impl.h - what an open vault is, for the files of this room. */
#ifndef FERMATA_VAULT_VAULT_IMPL_H
#define FERMATA_VAULT_VAULT_IMPL_H

#include "vault/envelope.h"
#include "vault/keyring.h"

#include <pthread.h>

struct vault {
	pthread_rwlock_t lock;      /* guards `keyring`: held while a data key is wrapped, never for a body */
	struct keyring *keyring;    /* immutable; a reload puts another in its place */
	struct vault_source source; /* our own copy */
};

#endif
