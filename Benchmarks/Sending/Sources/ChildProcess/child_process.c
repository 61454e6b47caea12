#include "child_process.h"

#include <fcntl.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

struct child_process_result child_process_run(char *const arguments[]) {
    struct child_process_result result = {.status = -1};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    pid_t process;
    int failure = posix_spawnp(&process, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (failure != 0) return result;
    int status;
    struct rusage usage;
    if (wait4(process, &status, 0, &usage) != process) return result;
    clock_gettime(CLOCK_MONOTONIC, &end);
    result.seconds = (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
    if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
#ifdef __APPLE__
    result.peak_bytes = usage.ru_maxrss;
#else
    result.peak_bytes = usage.ru_maxrss * 1024;
#endif
    return result;
}
