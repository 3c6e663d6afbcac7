/*
 * torture_alloc.c - malloc and its kin for the whole process, in front of AddressSanitizer's.
 *
 * Whose allocation it is, the stack says: the innermost function of this program on it is either the test's
 * or ours. Between it and the allocation there may be libraries, which allocate on our behalf: theirs fail
 * too, but for those in SPARED.
 */
#include "tests/torture/torture.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

#define SPANS 16

/* AddressSanitizer's own. */
void *__interceptor_malloc(size_t size);
void *__interceptor_calloc(size_t count, size_t size);
void *__interceptor_realloc(void *data, size_t size);
void *__interceptor_aligned_alloc(size_t alignment, size_t size);
void *__interceptor_memalign(size_t alignment, size_t size);
int __interceptor_posix_memalign(void **ret_data, size_t alignment, size_t size);
void __lsan_disable(void);
void __lsan_enable(void);

extern const char etext[];

/* Those that no header of ours declares. */
void *memalign(size_t alignment, size_t size);
void *sodium_malloc(size_t size);
void *sodium_allocarray(size_t count, size_t size);

struct span {
	uintptr_t start;
	uintptr_t end;
};

/* Libraries that end the process by design when there is no memory, so that there is nothing to look at. */
static const char *const SPARED[] = {
	"/librdkafka", /* rd_malloc and its kin assert */
	"/ld-linux",   /* thread-local storage of a library: "cannot allocate memory", exit 127 */
	"/libasan",
	"/libgcc_s",
};

static struct span spared[SPANS];
static size_t spared_len;
static struct torture_seen *seen;
static enum torture_mode mode;
static uint64_t number;
static bool armed;
static bool fine;
static __thread bool inside;

static int note_library(struct dl_phdr_info *info, size_t size, void *context)
{
	(void)size;
	(void)context;
	for (size_t i = 0; i < sizeof(SPARED) / sizeof(SPARED[0]); i++) {
		if (strstr(info->dlpi_name, SPARED[i]) == NULL)
			continue;
		for (int p = 0; p < info->dlpi_phnum && spared_len < SPANS; p++) {
			const ElfW(Phdr) *header = &info->dlpi_phdr[p];
			if (header->p_type != PT_LOAD || !(header->p_flags & PF_X))
				continue;
			uintptr_t start = info->dlpi_addr + header->p_vaddr;
			spared[spared_len++] = (struct span){ start, start + header->p_memsz };
		}
	}
	return 0;
}

void torture_prepare(struct torture_seen *shared)
{
	void *frames[2];

	seen = shared;
	fine = getenv("TORTURE_FINE") != NULL;
	__lsan_disable(); /* the first time it loads a library, which is kept */
	backtrace(frames, 2);
	__lsan_enable();
	dl_iterate_phdr(note_library, NULL);
}

void torture_arm(enum torture_mode how, uint64_t from)
{
	mode = how;
	number = from;
	armed = true;
}

void torture_disarm(void)
{
	armed = false;
}

static bool is_spared(uintptr_t pc)
{
	for (size_t i = 0; i < spared_len; i++)
		if (pc >= spared[i].start && pc < spared[i].end)
			return true;
	return false;
}

static bool is_test(uintptr_t pc)
{
	return pc < (uintptr_t)torture_low && pc >= (uintptr_t)torture_low - ((uintptr_t)1 << 26);
}

static bool is_runner(uintptr_t pc)
{
	return pc >= (uintptr_t)torture_low && pc <= (uintptr_t)torture_high;
}

static bool is_ours(uintptr_t pc)
{
	return pc > (uintptr_t)torture_high && pc < (uintptr_t)etext;
}

/* Did our code ask for this, itself or through a library? */
static bool asked_by_us(void *const *frames, int len)
{
	bool sparing = false;
	int first = 0;

	while (first < len && !is_runner((uintptr_t)frames[first] - 1))
		first++;
	for (int i = first; i < len; i++) {
		uintptr_t pc = (uintptr_t)frames[i] - 1;
		if (is_runner(pc))
			continue;
		if (is_test(pc))
			return false;
		if (is_ours(pc)) {
			if (sparing)
				__atomic_add_fetch(&seen->spared, 1, __ATOMIC_RELAXED);
			return !sparing;
		}
		sparing = sparing || is_spared(pc);
	}
	return false;
}

/* One number for a way to an allocation: each place on it once, so that depth of recursion makes no other. What a library
 * does between us and the allocation counts as one place, unless it is asked for all of them. */
static uint64_t way(void *const *frames, int len)
{
	uint64_t hash = 1469598103934665603U;

	for (int i = 0; i < len; i++) {
		uintptr_t pc = (uintptr_t)frames[i] - 1;
		if (is_test(pc))
			break;
		bool again = false;
		for (int j = 0; j < i && !again; j++)
			again = frames[j] == frames[i];
		if (!again && !is_runner(pc) && (fine || is_ours(pc)))
			hash = (hash ^ (uintptr_t)frames[i]) * 1099511628211U;
	}
	return hash;
}

/* Counts an allocation of ours; is it one that fails? */
static bool its_turn(void *const *frames, int len)
{
	uint64_t mine = __atomic_fetch_add(&seen->count, 1, __ATOMIC_RELAXED);

	if (mine >= TORTURE_MOST - 1 || (mode == TORTURE_ONCE && mine >= number))
		armed = false; /* a stack takes its time to look at */
	if (mode == TORTURE_COUNT) {
		if (mine < TORTURE_MOST)
			seen->stacks[mine] = way(frames, len);
		return false;
	}
	if (mine < number || (mode == TORTURE_ONCE && mine != number))
		return false;
	if (__atomic_fetch_add(&seen->failed, 1, __ATOMIC_RELAXED) == 0) {
		memcpy(seen->frames, frames, (size_t)len * sizeof(*frames));
		seen->frames_len = len;
	}
	return true;
}

static bool refused(void)
{
	void *frames[TORTURE_DEPTH];

	if (!armed || inside)
		return false;
	inside = true;
	int len = backtrace(frames, TORTURE_DEPTH);
	bool refuse = asked_by_us(frames, len) && its_turn(frames, len);
	inside = false;
	if (refuse)
		errno = ENOMEM;
	return refuse;
}

void *malloc(size_t size)
{
	return refused() ? NULL : __interceptor_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return refused() ? NULL : __interceptor_calloc(count, size);
}

void *realloc(void *data, size_t size)
{
	return size != 0 && refused() ? NULL : __interceptor_realloc(data, size);
}

void *reallocarray(void *data, size_t count, size_t size)
{
	if (size != 0 && count > SIZE_MAX / size) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(data, count * size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
	return refused() ? NULL : __interceptor_aligned_alloc(alignment, size);
}

void *memalign(size_t alignment, size_t size)
{
	return refused() ? NULL : __interceptor_memalign(alignment, size);
}

int posix_memalign(void **ret_data, size_t alignment, size_t size)
{
	return refused() ? ENOMEM : __interceptor_posix_memalign(ret_data, alignment, size);
}

char *strdup(const char *text)
{
	size_t size = strlen(text) + 1;
	char *copy = malloc(size);

	return copy != NULL ? memcpy(copy, text, size) : NULL;
}

char *strndup(const char *text, size_t most)
{
	size_t len = strnlen(text, most);
	char *copy = malloc(len + 1);

	if (copy == NULL)
		return NULL;
	memcpy(copy, text, len);
	copy[len] = '\0';
	return copy;
}

/* Locked pages are no heap, but they can be refused as well. */
void *sodium_malloc(size_t size)
{
	void *(*real)(size_t) = (void *(*)(size_t))dlsym(RTLD_NEXT, "sodium_malloc");

	return real == NULL || refused() ? NULL : real(size);
}

void *sodium_allocarray(size_t count, size_t size)
{
	void *(*real)(size_t, size_t) = (void *(*)(size_t, size_t))dlsym(RTLD_NEXT, "sodium_allocarray");

	return real == NULL || refused() ? NULL : real(count, size);
}
