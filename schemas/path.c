#include "schemas/path.h"

#include <stdio.h>

size_t path_print(const struct path_step *step, char *text, size_t cap)
{
	int more;

	if (!step) {
		text[0] = '\0';
		return 0;
	}
	size_t len = path_print(step->up, text, cap);
	if (step->field)
		more = snprintf(text + len, cap - len, "%s%s", len ? "." : "", step->field);
	else
		more = snprintf(text + len, cap - len, "[%lld]%s", (long long)step->item, step->key ? ".key" : "");
	return more < 0 || (size_t)more >= cap - len ? cap - 1 : len + (size_t)more;
}
