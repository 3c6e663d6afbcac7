/* store_migrate.h - the migrations that the program carries (made by embed.cmake out of migrations/). */
#ifndef FERMATA_STORE_STORE_MIGRATE_H
#define FERMATA_STORE_STORE_MIGRATE_H

struct migration {
	int version; /* 1, 2, 3, ... */
	const char *name;
	const char *sql;
};

extern const struct migration migrations[];
extern const int migrations_len; /* the newest version that this program knows */

#endif
