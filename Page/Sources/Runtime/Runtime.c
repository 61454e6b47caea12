#include "Runtime.h"

// MARK: - Memory

// A block has its size before it and after it, so that a freed one joins its free neighbours. The lowest bit of the size
// says whether the block is in use. Free blocks are in a list of their own.
typedef struct Block {
    size_t size;
    struct Block *next;
    struct Block *previous;
} Block;

enum { headBytes = 8, unit = 16, leastBytes = 32 };

extern unsigned char __heap_base;
static uintptr_t heapEnd;
static Block list = {0, &list, &list};

static size_t sizeOf(const Block *block) { return block->size & ~(size_t)1; }
static int isUsed(const Block *block) { return block->size & 1; }
static size_t *tailOf(Block *block) { return (size_t *)((char *)block + sizeOf(block) - headBytes); }
static Block *after(Block *block) { return (Block *)((char *)block + sizeOf(block)); }

static void mark(Block *block, size_t size, int used) {
    block->size = size | (size_t)used;
    *tailOf(block) = block->size;
}

static void unlinkBlock(Block *block) {
    block->previous->next = block->next;
    block->next->previous = block->previous;
}

static void link(Block *block) {
    block->next = list.next;
    block->previous = &list;
    list.next->previous = block;
    list.next = block;
}

// A used block without content ends the heap on both sides.
static int growHeap(size_t bytes) {
    const size_t page = 65536;
    size_t wanted = bytes + leastBytes + 2 * unit;
    // A quarter more than there is, so that growing takes few steps.
    size_t quarter = heapEnd / 4;
    if (wanted < quarter) wanted = quarter;
    size_t pages = (wanted + page - 1) / page;
    uintptr_t start = __builtin_wasm_memory_size(0) * page;
    if (__builtin_wasm_memory_grow(0, pages) == (size_t)-1) {
        pages = (bytes + leastBytes + 2 * unit + page - 1) / page;
        if (__builtin_wasm_memory_grow(0, pages) == (size_t)-1) return 0;
    }
    uintptr_t end = start + pages * page;
    Block *block;
    if (heapEnd == start) {
        // The mark at the end of the heap becomes part of the new block.
        block = (Block *)(heapEnd - unit);
    } else {
        uintptr_t first = start;
        if (heapEnd == 0) first = ((uintptr_t)&__heap_base + unit - 1) / unit * unit;
        Block *border = (Block *)(first + unit - headBytes);
        border->size = unit | 1;
        *(size_t *)((char *)border + unit - headBytes) = unit | 1;
        block = (Block *)((char *)border + unit);
    }
    heapEnd = end;
    Block *border = (Block *)(end - unit);
    if ((uintptr_t)block % unit != headBytes) border = (Block *)(end - unit);
    size_t size = (uintptr_t)border - (uintptr_t)block;
    border->size = unit | 1;
    mark(block, size, 0);
    link(block);
    return 1;
}

void *malloc(size_t count) {
    if (count > 0x7fffffff) return 0;
    size_t size = (count + 2 * headBytes + unit - 1) / unit * unit;
    if (size < leastBytes) size = leastBytes;
    for (int attempt = 0; attempt < 2; attempt++) {
        for (Block *block = list.next; block != &list; block = block->next) {
            if (sizeOf(block) < size) continue;
            unlinkBlock(block);
            size_t rest = sizeOf(block) - size;
            if (rest >= leastBytes) {
                mark(block, size, 1);
                Block *other = after(block);
                mark(other, rest, 0);
                link(other);
            } else {
                mark(block, sizeOf(block), 1);
            }
            return (char *)block + headBytes;
        }
        if (!growHeap(size)) return 0;
    }
    return 0;
}

void free(void *pointer) {
    if (!pointer) return;
    Block *block = (Block *)((char *)pointer - headBytes);
    size_t size = sizeOf(block);
    Block *next = after(block);
    if (!isUsed(next)) {
        unlinkBlock(next);
        size += sizeOf(next);
    }
    size_t before = *(size_t *)((char *)block - headBytes);
    if (!(before & 1)) {
        block = (Block *)((char *)block - before);
        unlinkBlock(block);
        size += before;
    }
    mark(block, size, 0);
    link(block);
}

int posix_memalign(void **pointer, size_t alignment, size_t count) {
    if (alignment > unit) return 22;
    *pointer = malloc(count);
    return *pointer ? 0 : 12;
}

void *realloc(void *pointer, size_t count) {
    void *new = malloc(count);
    if (!new || !pointer) return new;
    size_t old = sizeOf((Block *)((char *)pointer - headBytes)) - 2 * headBytes;
    __builtin_memcpy(new, pointer, old < count ? old : count);
    free(pointer);
    return new;
}

// MARK: - Bytes

void *memcpy(void *to, const void *from, size_t count) {
    char *out = to;
    const char *in = from;
    while (count--) *out++ = *in++;
    return to;
}

void *memmove(void *to, const void *from, size_t count) {
    char *out = to;
    const char *in = from;
    if (out <= in) {
        while (count--) *out++ = *in++;
    } else {
        while (count--) out[count] = in[count];
    }
    return to;
}

void *memset(void *to, int value, size_t count) {
    char *out = to;
    while (count--) *out++ = (char)value;
    return to;
}

int memcmp(const void *left, const void *right, size_t count) {
    const unsigned char *a = left, *b = right;
    for (; count--; a++, b++) {
        if (*a != *b) return *a - *b;
    }
    return 0;
}

size_t strlen(const char *text) {
    size_t count = 0;
    while (text[count]) count++;
    return count;
}

// MARK: - The rest

// Dictionaries need no secret seed: the page is gone with what it was given.
void arc4random_buf(void *buffer, size_t count) { memset(buffer, 0x5A, count); }

int putchar(int character) { return character; }

// The product of two numbers of 128 bits.
typedef __int128 int128;
int128 __multi3(int128 a, int128 b) {
    typedef unsigned __int128 u;
    uint64_t al = (uint64_t)a, ah = (uint64_t)((u)a >> 64), bl = (uint64_t)b, bh = (uint64_t)((u)b >> 64);
    uint64_t a0 = al & 0xffffffff, a1 = al >> 32, b0 = bl & 0xffffffff, b1 = bl >> 32;
    uint64_t p00 = a0 * b0, p01 = a0 * b1, p10 = a1 * b0, p11 = a1 * b1;
    uint64_t middle = (p00 >> 32) + (p01 & 0xffffffff) + (p10 & 0xffffffff);
    uint64_t low = (middle << 32) | (p00 & 0xffffffff);
    uint64_t high = p11 + (p01 >> 32) + (p10 >> 32) + (middle >> 32) + al * bh + ah * bl;
    return (int128)(((u)high << 64) | low);
}

// Set by the compiler around functions with buffers on the stack.
uintptr_t __stack_chk_guard = 0x5A17C0DE;
void __stack_chk_fail(void) { __builtin_trap(); }

// The page reads numbers exactly.
const char *_swift_stdlib_strtod_clocale(const char *text, double *number) {
    size_t count = strlen(text);
    *number = page_number(text, count);
    return *number == *number ? text + count : 0;
}
