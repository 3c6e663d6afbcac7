/* torture_low.c - linked right behind the test's own file: what is before it in memory is the test. */
#include "tests/torture/torture.h"

void torture_low(void)
{
}
