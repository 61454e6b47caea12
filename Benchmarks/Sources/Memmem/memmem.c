#define _GNU_SOURCE
#include "memmem.h"

#include <string.h>

const void *find_bytes(const void *bytes, size_t byte_count, const void *wanted, size_t wanted_count) {
    return memmem(bytes, byte_count, wanted, wanted_count);
}
