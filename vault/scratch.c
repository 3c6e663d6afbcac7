#include "vault/scratch.h"

#include <stdlib.h>

bool scratch_init(struct scratch *scratch, size_t len)
{
	scratch->data = malloc(len);
	scratch->len = scratch->data != NULL ? len : 0;
	return scratch->data != NULL;
}

void scratch_done(struct scratch *scratch)
{
	if (scratch->data != NULL)
		memory_wipe(scratch->data, scratch->len);
	free(scratch->data);
}
