#ifndef POSTCARD_MEMORY_METER_H
#define POSTCARD_MEMORY_METER_H

#include <stdbool.h>
#include <stddef.h>

/// Whether this program's allocations are counted: only with glibc, whose allocator can be stood before.
bool memory_meter_counts(void);

/// How many blocks have been allocated since the program started, by any code.
size_t memory_meter_allocations(void);

/// How many bytes are allocated now.
size_t memory_meter_live_bytes(void);

/// The most bytes that were allocated at once since the last reset.
size_t memory_meter_peak_bytes(void);

/// Resets the peak to what is allocated now.
void memory_meter_reset_peak(void);

/// The most memory that the process has had in use, its code and the system's libraries included; 0 if unknown.
size_t memory_meter_peak_resident_bytes(void);

#endif
