/* dev_files.h - the temporary directory of `fermata demo` and `fermata dev`: its files, programs and ports. */
#ifndef FERMATA_CLI_DEV_FILES_H
#define FERMATA_CLI_DEV_FILES_H

#include "core/memory.h"

#include <sys/types.h>

#define DEV_ROOT_MAX 128 /* bytes of the path of the directory, NUL included */
#define DEV_PATH_MAX 512 /* bytes of any path in it that we make up */

/*
 * Makes NAME.XXXXXX below TMPDIR or /tmp. open_to_others: another account has to get through (mode 0711, and
 * where a directory above is closed to others, /tmp is taken); else 0700. Path without symbolic links.
 * FATAL with ERR_SYSTEM.
 */
FM_MUSTCHECK enum fate files_make_root(const char *name, bool open_to_others, char ret_root[DEV_ROOT_MAX],
                                       struct error *error);
/* dir/name. Both are ours and short: a path that does not fit is our mistake. */
void files_join(char ret_path[DEV_PATH_MAX], const char *dir, const char *name);
FM_MUSTCHECK enum fate files_make_directory(const char *path, mode_t mode, struct error *error);
/* Writes a new file, or one that is there anew. */
FM_MUSTCHECK enum fate files_write(const char *path, mode_t mode, struct view content, struct error *error);

/* Called with each file (directories after what is in them); false ends the walk. No symbolic link is
 * followed. */
typedef bool files_visit(void *context, const char *path, bool is_directory);
/* False: it was ended, or a directory could not be read. What vanishes meanwhile is passed over. */
bool files_walk(const char *path, files_visit *visit, void *context);
/* Removes it and all that is in it, as far as that goes. True: it is gone. */
bool files_remove(const char *path);

/* Calls take with the last lines (at most count, each cut at 400 bytes) of a text file. */
void files_tail(const char *path, size_t count, void (*take)(void *context, const char *line), void *context);

/* The program in PATH. False: it is not there. */
FM_MUSTCHECK bool files_find_program(const char *name, char ret_path[DEV_PATH_MAX]);
/* The program that lies beside our own ("fermata" itself too). FATAL with ERR_USAGE: it is not there. */
FM_MUSTCHECK enum fate files_find_own(const char *name, char ret_path[DEV_PATH_MAX], struct error *error);

/* A TCP port of 127.0.0.1 that nobody listens on, below those that the kernel hands out by itself.
 * RETRY with ERR_SYSTEM when there is none. */
FM_MUSTCHECK enum fate files_free_port(int *ret_port, struct error *error);
/* len lower-case hex digits and a NUL. FATAL with ERR_SYSTEM. */
FM_MUSTCHECK enum fate files_random_hex(char *ret_text, size_t len, struct error *error);

#endif
