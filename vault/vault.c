#include "vault/frame.h"
#include "vault/vault_impl.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static void argv_free(const char *const *argv)
{
	if (argv == NULL)
		return;
	for (size_t i = 0; argv[i] != NULL; i++)
		free((char *)argv[i]);
	free((void *)argv);
}

/* NULL when there is no memory. */
static const char *const *argv_copy(const char *const *argv)
{
	size_t len = 0;

	while (argv[len] != NULL)
		len++;
	const char **copy = calloc(len + 1, sizeof(*copy));
	for (size_t i = 0; copy != NULL && i < len; i++) {
		copy[i] = strdup(argv[i]);
		if (copy[i] == NULL) {
			argv_free(copy);
			return NULL;
		}
	}
	return copy;
}

static bool text_copy(const char *text, const char **ret_text)
{
	*ret_text = text != NULL ? strdup(text) : NULL;
	return text == NULL || *ret_text != NULL;
}

/* On failure *ret_source holds what there is of it, for source_done. */
static bool source_copy(const struct vault_source *source, struct vault_source *ret_source)
{
	*ret_source = (struct vault_source){ 0 };
	if (!text_copy(source->keyring_file, &ret_source->keyring_file) ||
	    !text_copy(source->credentials_directory, &ret_source->credentials_directory))
		return false;
	if (source->keyring_command != NULL)
		ret_source->keyring_command = argv_copy(source->keyring_command);
	return source->keyring_command == NULL || ret_source->keyring_command != NULL;
}

static void source_done(struct vault_source *source)
{
	free((char *)source->keyring_file);
	free((char *)source->credentials_directory);
	argv_free(source->keyring_command);
}

/* A reload must not wait for ever behind readers that keep coming. */
static void lock_init(pthread_rwlock_t *lock)
{
	pthread_rwlockattr_t attributes;

	pthread_rwlockattr_init(&attributes);
	pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	int failed = pthread_rwlock_init(lock, &attributes);
	assert(failed == 0);
	pthread_rwlockattr_destroy(&attributes);
}

enum fate vault_open(struct vault **ret_vault, const struct vault_source *source, struct error *error)
{
	struct vault *vault = calloc(1, sizeof(*vault));

	if (vault == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for the vault");
	lock_init(&vault->lock);
	enum fate fate = FATE_OK;
	if (!source_copy(source, &vault->source))
		fate = error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for the vault");
	if (fate == FATE_OK)
		fate = vault_reload(vault, error);
	if (fate != FATE_OK) {
		vault_close(vault);
		return fate;
	}
	*ret_vault = vault;
	return FATE_OK;
}

void vault_close(struct vault *vault)
{
	if (vault == NULL)
		return;
	keyring_free(vault->keyring);
	source_done(&vault->source);
	pthread_rwlock_destroy(&vault->lock);
	free(vault);
	vault_rest();
}

void vault_rest(void)
{
	frame_done();
}

enum fate vault_reload(struct vault *vault, struct error *error)
{
	struct keyring *keyring = NULL;

	enum fate fate = keyring_load(&vault->source, &keyring, error);
	if (fate != FATE_OK)
		return fate;
	pthread_rwlock_wrlock(&vault->lock);
	struct keyring *old = vault->keyring;
	vault->keyring = keyring;
	pthread_rwlock_unlock(&vault->lock);
	keyring_free(old);
	return FATE_OK;
}
