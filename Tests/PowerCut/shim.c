// Keeps a journal of what a program does to the files below one directory, so that a test can tell what a power cut
// would leave of it. Preloaded into the program:
//
//     LD_PRELOAD=shim.so POSTCARD_DISK=/dev/shm/disk POSTCARD_JOURNAL=journal postcard serve --directory
//     /dev/shm/disk/r
//
// Each entry is a line, then the names or bytes whose SIZE it says, and the end of a line. NODE is a file's device and
// number:
//
//     disk NODE                 the directory itself; once for each process
//     file IN NODE SIZE         a name in the directory IN, which became a file
//     directory IN NODE SIZE    the same for a directory
//     link IN NODE SIZE         another name of a file
//     unlink IN SIZE            the name was removed
//     rename IN IN SIZE SIZE    the old name in the one directory became the new one in the other
//     write NODE OFFSET SIZE    the bytes were written
//     truncate NODE LENGTH      the file was cut or made longer
//     sync NODE START           what the journal's first START bytes say of the node is on the disk
//     output SIZE               the bytes are about to be sent to a socket or written to standard output
//
// What is done here goes to the kernel by system calls, past the other functions of this file. A sync is not carried
// out but takes a millisecond, so that others ask for theirs meanwhile, as they do on a disk. What is not known here
// (copy_file_range, mmap, files that the C library opens by itself) is missing in the journal: the test sees it,
// because the whole journal then does not make the directory as it is.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static int journal = -1;
static char disk[4096];
static size_t disk_length;

static void write_whole(const void *bytes, size_t count) {
    while (count > 0) {
        ssize_t written = syscall(SYS_write, journal, bytes, count);
        if (written < 0) abort();
        bytes = (const char *)bytes + written;
        count -= written;
    }
}

// Only names have more after them, and they are short.
static void note(const void *bytes, size_t count, const void *more, size_t more_count, const char *format, ...) {
    static char entry[1 << 16];
    va_list values;
    va_start(values, format);
    size_t length = vsnprintf(entry, 512, format, values);
    va_end(values);
    if (length + count + more_count + 1 > sizeof entry) {
        write_whole(entry, length);
        write_whole(bytes, count);
        write_whole("\n", 1);
        return;
    }
    memcpy(entry + length, bytes, count);
    memcpy(entry + length + count, more, more_count);
    length += count + more_count;
    if (count > 0) entry[length++] = '\n';
    write_whole(entry, length);
}

struct node { char text[40]; };

static struct node name_of(const struct stat *status) {
    struct node node;
    snprintf(node.text, sizeof node.text, "%llx.%llx", (unsigned long long)status->st_dev,
             (unsigned long long)status->st_ino);
    return node;
}

__attribute__((constructor)) static void begin(void) {
    const char *root = getenv("POSTCARD_DISK"), *path = getenv("POSTCARD_JOURNAL");
    struct stat status;
    if (!root || !path || !realpath(root, disk) || stat(disk, &status) != 0) return;
    disk_length = strlen(disk);
    journal = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (journal >= 0) note("", 0, "", 0, "disk %s\n", name_of(&status).text);
}

static int is_on_disk(int descriptor) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, sizeof path - 1);
    if (length < (ssize_t)disk_length) return 0;
    path[length] = 0;
    return !memcmp(path, disk, disk_length) && (path[disk_length] == '/' || path[disk_length] == 0);
}

// A name in a directory on the disk. Where it is elsewhere, length is 0.
struct place {
    struct node directory, node;
    const char *name;
    size_t length;
    int exists, is_directory;
};

static struct place find(int base, const char *path) {
    struct place place = {.length = 0};
    struct stat status;
    if (journal < 0 || !path) return place;
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/') end--;
    size_t start = end;
    while (start > 0 && path[start - 1] != '/') start--;
    char containing[4096];
    if (start >= sizeof containing) return place;
    snprintf(containing, sizeof containing, "%.*s", (int)start, path);
    int directory = syscall(SYS_openat, base, start ? containing : ".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
    if (directory < 0) return place;
    if (is_on_disk(directory) && fstat(directory, &status) == 0) {
        place.directory = name_of(&status);
        place.name = path + start;
        place.length = end - start;
        place.exists = fstatat(base, path, &status, AT_SYMLINK_NOFOLLOW) == 0;
        if (place.exists) {
            place.node = name_of(&status);
            place.is_directory = S_ISDIR(status.st_mode);
        }
    }
    syscall(SYS_close, directory);
    return place;
}

static void note_new(const char *kind, int base, const char *path) {
    struct place place = find(base, path);
    if (place.length && place.exists)
        note(place.name, place.length, "", 0, "%s %s %s %zu\n", kind, place.directory.text, place.node.text,
             place.length);
}

// A regular file on the disk.
static int is_noted(int descriptor, struct node *node) {
    struct stat status;
    if (journal < 0 || fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode) || !is_on_disk(descriptor))
        return 0;
    *node = name_of(&status);
    return 1;
}

// MARK: - Names

static int open_noting(int base, const char *path, int flags, mode_t mode) {
    // What is left after a power cut is looked at since another start of the system.
    if (journal >= 0 && !strcmp(path, "/proc/sys/kernel/random/boot_id")) path = "/proc/sys/kernel/random/uuid";
    if (journal < 0 || (flags & (O_CREAT | O_TRUNC)) == 0) return syscall(SYS_openat, base, path, flags, mode);
    pthread_mutex_lock(&turn);
    struct place before = find(base, path);
    int result = syscall(SYS_openat, base, path, flags, mode), error = errno;
    struct node node;
    if (result >= 0 && before.length && !before.exists) note_new("file", base, path);
    if (result >= 0 && flags & O_TRUNC && is_noted(result, &node)) note("", 0, "", 0, "truncate %s 0\n", node.text);
    pthread_mutex_unlock(&turn);
    errno = error;
    return result;
}

#define MODE(flags) \
    mode_t mode = 0; \
    if (flags & O_CREAT) { \
        va_list values; \
        va_start(values, flags); \
        mode = va_arg(values, int); \
        va_end(values); \
    }

int open(const char *path, int flags, ...) { MODE(flags) return open_noting(AT_FDCWD, path, flags, mode); }
int open64(const char *path, int flags, ...) { MODE(flags) return open_noting(AT_FDCWD, path, flags, mode); }
int openat(int base, const char *path, int flags, ...) { MODE(flags) return open_noting(base, path, flags, mode); }
int openat64(int base, const char *path, int flags, ...) { MODE(flags) return open_noting(base, path, flags, mode); }
int creat(const char *path, mode_t mode) { return open_noting(AT_FDCWD, path, O_CREAT | O_WRONLY | O_TRUNC, mode); }
int creat64(const char *path, mode_t mode) { return creat(path, mode); }

int mkdirat(int base, const char *path, mode_t mode) {
    pthread_mutex_lock(&turn);
    int result = syscall(SYS_mkdirat, base, path, mode), error = errno;
    if (result == 0) note_new("directory", base, path);
    pthread_mutex_unlock(&turn);
    errno = error;
    return result;
}
int mkdir(const char *path, mode_t mode) { return mkdirat(AT_FDCWD, path, mode); }

int linkat(int base, const char *path, int other_base, const char *other, int flags) {
    pthread_mutex_lock(&turn);
    int result = syscall(SYS_linkat, base, path, other_base, other, flags), error = errno;
    if (result == 0) note_new("link", other_base, other);
    pthread_mutex_unlock(&turn);
    errno = error;
    return result;
}
int link(const char *path, const char *other) { return linkat(AT_FDCWD, path, AT_FDCWD, other, 0); }

int unlinkat(int base, const char *path, int flags) {
    pthread_mutex_lock(&turn);
    struct place place = find(base, path);
    int result = syscall(SYS_unlinkat, base, path, flags), error = errno;
    if (result == 0 && place.length)
        note(place.name, place.length, "", 0, "unlink %s %zu\n", place.directory.text, place.length);
    pthread_mutex_unlock(&turn);
    errno = error;
    return result;
}
int unlink(const char *path) { return unlinkat(AT_FDCWD, path, 0); }
int rmdir(const char *path) { return unlinkat(AT_FDCWD, path, AT_REMOVEDIR); }
int remove(const char *path) {
    int result = unlink(path);
    return result != 0 && errno == EISDIR ? rmdir(path) : result;
}

int renameat2(int base, const char *path, int other_base, const char *other, unsigned flags) {
    pthread_mutex_lock(&turn);
    struct place from = find(base, path), to = find(other_base, other);
    int result = syscall(SYS_renameat2, base, path, other_base, other, flags), error = errno;
    if (result == 0 && from.length && to.length && !(flags & RENAME_EXCHANGE))
        note(from.name, from.length, to.name, to.length, "rename %s %s %zu %zu\n", from.directory.text,
             to.directory.text, from.length, to.length);
    pthread_mutex_unlock(&turn);
    errno = error;
    return result;
}
int renameat(int base, const char *path, int other_base, const char *other) {
    return renameat2(base, path, other_base, other, 0);
}
int rename(const char *path, const char *other) { return renameat2(AT_FDCWD, path, AT_FDCWD, other, 0); }

// MARK: - Bytes

ssize_t pwrite(int descriptor, const void *bytes, size_t count, off_t offset) {
    struct node node;
    if (!is_noted(descriptor, &node)) return syscall(SYS_pwrite64, descriptor, bytes, count, offset);
    pthread_mutex_lock(&turn);
    ssize_t result = syscall(SYS_pwrite64, descriptor, bytes, count, offset);
    int error = errno;
    if (result > 0)
        note(bytes, result, "", 0, "write %s %lld %zd\n", node.text, (long long)offset, result);
    pthread_mutex_unlock(&turn);
    errno = error;
    return result;
}
ssize_t pwrite64(int descriptor, const void *bytes, size_t count, off_t offset) {
    return pwrite(descriptor, bytes, count, offset);
}

// Before it is sent: later entries of the journal may be after the client has it.
static void note_output(int descriptor, const struct iovec *pieces, int count) {
    struct stat status;
    if (journal < 0 || fstat(descriptor, &status) != 0) return;
    if (!S_ISSOCK(status.st_mode) && descriptor != STDOUT_FILENO) return;
    char bytes[16384];
    size_t length = 0;
    for (int index = 0; index < count && length < sizeof bytes; index++) {
        size_t room = sizeof bytes - length, size = pieces[index].iov_len;
        memcpy(bytes + length, pieces[index].iov_base, size < room ? size : room);
        length += size < room ? size : room;
    }
    pthread_mutex_lock(&turn);
    note(bytes, length, "", 0, "output %zu\n", length);
    pthread_mutex_unlock(&turn);
}

ssize_t write(int descriptor, const void *bytes, size_t count) {
    struct node node;
    struct iovec piece = {(void *)bytes, count};
    note_output(descriptor, &piece, 1);
    if (!is_noted(descriptor, &node)) return syscall(SYS_write, descriptor, bytes, count);
    pthread_mutex_lock(&turn);
    ssize_t result = syscall(SYS_write, descriptor, bytes, count);
    int error = errno;
    if (result > 0)
        note(bytes, result, "", 0, "write %s %lld %zd\n", node.text,
             (long long)lseek(descriptor, 0, SEEK_CUR) - (long long)result, result);
    pthread_mutex_unlock(&turn);
    errno = error;
    return result;
}

ssize_t writev(int descriptor, const struct iovec *pieces, int count) {
    struct node node;
    note_output(descriptor, pieces, count);
    // A part of it is as good to its caller as the whole.
    if (is_noted(descriptor, &node) && count > 0) return write(descriptor, pieces[0].iov_base, pieces[0].iov_len);
    return syscall(SYS_writev, descriptor, pieces, count);
}

ssize_t send(int descriptor, const void *bytes, size_t count, int flags) {
    struct iovec piece = {(void *)bytes, count};
    note_output(descriptor, &piece, 1);
    return syscall(SYS_sendto, descriptor, bytes, count, flags, NULL, 0);
}

ssize_t sendmsg(int descriptor, const struct msghdr *message, int flags) {
    note_output(descriptor, message->msg_iov, message->msg_iovlen);
    return syscall(SYS_sendmsg, descriptor, message, flags);
}

int ftruncate(int descriptor, off_t length) {
    struct node node;
    if (!is_noted(descriptor, &node)) return syscall(SYS_ftruncate, descriptor, length);
    pthread_mutex_lock(&turn);
    int result = syscall(SYS_ftruncate, descriptor, length), error = errno;
    if (result == 0) note("", 0, "", 0, "truncate %s %lld\n", node.text, (long long)length);
    pthread_mutex_unlock(&turn);
    errno = error;
    return result;
}
int ftruncate64(int descriptor, off_t length) { return ftruncate(descriptor, length); }

// MARK: - Syncs

static int sync_noting(int descriptor, long call) {
    struct stat status;
    if (journal < 0 || !is_on_disk(descriptor) || fstat(descriptor, &status) != 0) return syscall(call, descriptor);
    pthread_mutex_lock(&turn);
    long long start = lseek(journal, 0, SEEK_END);
    pthread_mutex_unlock(&turn);
    struct timespec millisecond = {0, 1000000};
    nanosleep(&millisecond, NULL);
    pthread_mutex_lock(&turn);
    note("", 0, "", 0, "sync %s %lld\n", name_of(&status).text, start);
    pthread_mutex_unlock(&turn);
    return 0;
}
int fsync(int descriptor) { return sync_noting(descriptor, SYS_fsync); }
int fdatasync(int descriptor) { return sync_noting(descriptor, SYS_fdatasync); }
