#include "memory_meter.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>

static atomic_size_t allocations;
static atomic_size_t live_bytes;
static atomic_size_t peak_bytes;

size_t memory_meter_allocations(void) { return atomic_load(&allocations); }
size_t memory_meter_live_bytes(void) { return atomic_load(&live_bytes); }
size_t memory_meter_peak_bytes(void) { return atomic_load(&peak_bytes); }
void memory_meter_reset_peak(void) { atomic_store(&peak_bytes, atomic_load(&live_bytes)); }

size_t memory_meter_peak_resident_bytes(void) {
#ifdef __linux__
    // ru_maxrss would count what the parent had in use before the exec.
    FILE *status = fopen("/proc/self/status", "r");
    if (status == NULL) return 0;
    char line[256];
    unsigned long kilobytes = 0;
    while (fgets(line, sizeof line, status) != NULL) {
        if (sscanf(line, "VmHWM: %lu kB", &kilobytes) == 1) break;
    }
    fclose(status);
    return kilobytes * 1024;
#else
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? (size_t)usage.ru_maxrss : 0;
#endif
}

#ifdef __GLIBC__
#include <malloc.h>
#include <stdlib.h>

// The functions of an executable take precedence over those of its libraries, so these make every allocation of the
// process, including those of the Swift runtime.
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *block);

bool memory_meter_counts(void) { return true; }

static void *counted(void *block) {
    if (block == NULL) return NULL;
    atomic_fetch_add(&allocations, 1);
    size_t size = malloc_usable_size(block);
    size_t live = atomic_fetch_add(&live_bytes, size) + size;
    size_t peak = atomic_load(&peak_bytes);
    while (live > peak && !atomic_compare_exchange_weak(&peak_bytes, &peak, live)) {
    }
    return block;
}

void *malloc(size_t size) { return counted(__libc_malloc(size)); }

void *calloc(size_t count, size_t size) { return counted(__libc_calloc(count, size)); }

void free(void *block) {
    if (block == NULL) return;
    atomic_fetch_sub(&live_bytes, malloc_usable_size(block));
    __libc_free(block);
}

void *realloc(void *block, size_t size) {
    size_t before = block == NULL ? 0 : malloc_usable_size(block);
    void *moved = __libc_realloc(block, size);
    if (moved == NULL && size != 0) return NULL;
    atomic_fetch_sub(&live_bytes, before);
    return counted(moved);
}

void *memalign(size_t alignment, size_t size) { return counted(__libc_memalign(alignment, size)); }

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **block, size_t alignment, size_t size) {
    if (alignment % sizeof(void *) != 0 || (alignment & (alignment - 1)) != 0 || alignment == 0) return EINVAL;
    void *found = memalign(alignment, size);
    if (found == NULL) return ENOMEM;
    *block = found;
    return 0;
}
#else
bool memory_meter_counts(void) { return false; }
#endif
