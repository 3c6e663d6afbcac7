#include "vault/frame.h"

#include "core/memory.h"

#include <assert.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#define ZSTD_STATIC_LINKING_ONLY /* for ZSTD_customMem; the shared library has what goes with it */
#include <zstd.h>
#include <zstd_errors.h>

#define LEVEL 2
#define HEAD  16 /* before what zstd is given: how long that is; as much as malloc aligns to */

/* What a context holds may be of what was sealed: it is wiped before it is freed. */
static void *context_alloc(void *opaque, size_t size)
{
	uint8_t *block = size <= SIZE_MAX - HEAD ? malloc(HEAD + size) : NULL;

	(void)opaque;
	if (block == NULL)
		return NULL;
	memcpy(block, &size, sizeof(size));
	return block + HEAD;
}

static void context_free(void *opaque, void *address)
{
	size_t size;

	(void)opaque;
	if (address == NULL)
		return;
	uint8_t *block = (uint8_t *)address - HEAD;
	memcpy(&size, block, sizeof(size));
	memory_wipe(block, HEAD + size);
	free(block);
}

static const ZSTD_customMem wiped = { context_alloc, context_free, NULL };

struct contexts {
	ZSTD_CCtx *pack;
	ZSTD_DCtx *unpack;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t thread_key;

static void contexts_free(void *memory)
{
	struct contexts *contexts = memory;

	if (contexts == NULL)
		return;
	ZSTD_freeCCtx(contexts->pack);
	ZSTD_freeDCtx(contexts->unpack);
	free(contexts);
}

static void make_key(void)
{
	int failed = pthread_key_create(&thread_key, contexts_free);

	assert(failed == 0); /* POSIX gives a process 128 of them, and this is our only one */
}

/* The calling thread's contexts, either of which may be NULL; NULL when there is no memory. */
static struct contexts *contexts_get(void)
{
	pthread_once(&once, make_key);
	struct contexts *contexts = pthread_getspecific(thread_key);
	if (contexts != NULL)
		return contexts;
	contexts = calloc(1, sizeof(*contexts));
	if (contexts != NULL && pthread_setspecific(thread_key, contexts) != 0) {
		free(contexts);
		return NULL;
	}
	return contexts;
}

size_t frame_pack(struct view plain, uint8_t *out, size_t cap)
{
	struct contexts *contexts = contexts_get();

	if (contexts == NULL)
		return 0;
	if (contexts->pack == NULL)
		contexts->pack = ZSTD_createCCtx_advanced(wiped);
	if (contexts->pack == NULL)
		return 0;
	size_t len = ZSTD_compressCCtx(contexts->pack, out, cap, plain.data, plain.len, LEVEL);
	return ZSTD_isError(len) ? 0 : len;
}

enum fate frame_unpack(struct view frame, uint8_t *out, size_t len, struct error *error)
{
	struct contexts *contexts = contexts_get();

	if (contexts != NULL && contexts->unpack == NULL)
		contexts->unpack = ZSTD_createDCtx_advanced(wiped);
	if (contexts == NULL || contexts->unpack == NULL)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for zstd");
	size_t got = ZSTD_decompressDCtx(contexts->unpack, out, len, frame.data, frame.len);
	if (ZSTD_getErrorCode(got) == ZSTD_error_memory_allocation)
		return error_set(error, FATE_RETRY, ERR_MEMORY, "no memory for zstd");
	if (ZSTD_isError(got))
		return error_set_native(error, FATE_REJECT, ERR_TAMPERED, ZSTD_getErrorName(got),
		                        "what was sealed is no zstd frame of %zu bytes", len);
	if (got != len)
		return error_set(error, FATE_REJECT, ERR_TAMPERED, "what was sealed has %zu bytes and not %zu", got,
		                 len);
	return FATE_OK;
}

void frame_done(void)
{
	pthread_once(&once, make_key);
	contexts_free(pthread_getspecific(thread_key));
	pthread_setspecific(thread_key, NULL);
}
