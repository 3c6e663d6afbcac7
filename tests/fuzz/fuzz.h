/* fuzz.h - what libFuzzer calls, and what seeds.c calls in its place. */
#ifndef FERMATA_TESTS_FUZZ_FUZZ_H
#define FERMATA_TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#endif
