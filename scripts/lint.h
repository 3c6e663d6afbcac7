/*
 * lint.h - put before every file by scripts/lint: tells clang's analyzer, which looks at one file at a time,
 * what error.c and memory.c do: what returns an error does not return FATE_OK, a view that is not null has bytes.
 */
#ifndef FERMATA_SCRIPTS_LINT_H
#define FERMATA_SCRIPTS_LINT_H

#include "core/memory.h"

#define LINT_FAILED(call)                                                                                    \
	__extension__({                                                                                          \
		enum fate lint_fate = (call);                                                                        \
		if (lint_fate == FATE_OK)                                                                            \
			__builtin_unreachable();                                                                         \
		lint_fate;                                                                                           \
	})
#define error_set(...)        LINT_FAILED((error_set)(__VA_ARGS__))
#define error_set_native(...) LINT_FAILED((error_set_native)(__VA_ARGS__))
#define error_set_errno(...)  LINT_FAILED((error_set_errno)(__VA_ARGS__))
#define error_wrap(...)       LINT_FAILED((error_wrap)(__VA_ARGS__))

#define view_is_null(view) ((view).data == NULL)

#endif
