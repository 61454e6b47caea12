#ifndef POSTCARD_MEMMEM_H
#define POSTCARD_MEMMEM_H

#include <stddef.h>

/// The C library's `memmem`, which Swift does not see because glibc hides it behind `_GNU_SOURCE`.
const void *_Nullable find_bytes(
    const void *_Nonnull bytes, size_t byte_count, const void *_Nonnull wanted, size_t wanted_count);

#endif
