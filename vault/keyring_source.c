/* Which source a keyring is read from: exactly one of a file, a credential and a command. */
#include "vault/keyring.h"

#include <errno.h>
#include <limits.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/stat.h>

#define CREDENTIAL "keyring"

/* Locked memory for the text, as long as it is needed. */
static void text_free(uint8_t **text)
{
	sodium_free(*text);
}

static enum fate load_file(const char *path, struct keyring **ret_keyring, struct error *error)
{
	__attribute__((cleanup(text_free))) uint8_t *text = sodium_malloc(KEYRING_TEXT_MAX);
	size_t len = 0;

	if (text == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for keyring %s", path);
	enum fate fate = keyring_read_file(path, text, KEYRING_TEXT_MAX, &len, error);
	if (fate != FATE_OK)
		return fate;
	return keyring_parse((struct view){ text, len }, path, ret_keyring, error);
}

static enum fate load_command(const char *const *argv, struct keyring **ret_keyring, struct error *error)
{
	__attribute__((cleanup(text_free))) uint8_t *text = sodium_malloc(KEYRING_TEXT_MAX);
	size_t len = 0;

	if (text == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for the keyring of %s", argv[0]);
	enum fate fate = keyring_read_command(argv, KEYRING_COMMAND_MS, text, KEYRING_TEXT_MAX, &len, error);
	if (fate != FATE_OK)
		return fate;
	return keyring_parse((struct view){ text, len }, argv[0], ret_keyring, error);
}

/* systemd sets the directory for any credential of the unit, so it is a source only when it has ours. */
static bool credential_there(const char *path)
{
	struct stat status;

	return stat(path, &status) == 0 || errno != ENOENT;
}

static enum fate no_source(const char *credentials_directory, struct error *error)
{
	if (credentials_directory != NULL)
		return error_set(error, FATE_FATAL, ERR_USAGE,
		                 "no keyring: $CREDENTIALS_DIRECTORY (%s) has no credential " CREDENTIAL
		                 ", and neither vault.keyring_file nor vault.keyring_command is set",
		                 credentials_directory);
	return error_set(error, FATE_FATAL, ERR_USAGE,
	                 "no keyring: set vault.keyring_file (fermata keys generate writes one) or "
	                 "vault.keyring_command");
}

enum fate keyring_load(const struct vault_source *source, struct keyring **ret_keyring, struct error *error)
{
	char credential[PATH_MAX] = "";

	if (source->credentials_directory != NULL) {
		int len = snprintf(credential, sizeof(credential), "%s/" CREDENTIAL, source->credentials_directory);
		if (len < 0 || (size_t)len >= sizeof(credential))
			return error_set(error, FATE_FATAL, ERR_USAGE, "$CREDENTIALS_DIRECTORY is too long a path");
	}
	bool has_file = source->keyring_file != NULL;
	bool has_command = source->keyring_command != NULL && source->keyring_command[0] != NULL;
	bool has_credential = source->credentials_directory != NULL && credential_there(credential);

	if (has_file + has_command + has_credential > 1)
		return error_set(error, FATE_FATAL, ERR_USAGE,
		                 "several keyrings, and one is wanted:%s%s%s; leave all but one out",
		                 has_file ? " vault.keyring_file" : "", has_command ? " vault.keyring_command" : "",
		                 has_credential ? " $CREDENTIALS_DIRECTORY/" CREDENTIAL : "");
	if (has_file)
		return load_file(source->keyring_file, ret_keyring, error);
	if (has_command)
		return load_command(source->keyring_command, ret_keyring, error);
	if (has_credential)
		return load_file(credential, ret_keyring, error);
	return no_source(source->credentials_directory, error);
}
