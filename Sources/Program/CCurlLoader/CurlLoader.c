#include "CurlLoader.h"

#ifdef __linux__
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

// The functions of libcurl that URLSession calls. Each has at most six parameters, all of them integers or pointers. On
// every processor on which Swift runs on Linux, both are passed in the same registers. One function type therefore fits
// all of these functions.
typedef long (*function)(long, long, long, long, long, long);

#define FUNCTIONS(F)                                                                                                   \
    F(curl_easy_cleanup)                                                                                               \
    F(curl_easy_getinfo)                                                                                               \
    F(curl_easy_init)                                                                                                  \
    F(curl_easy_pause)                                                                                                 \
    F(curl_easy_setopt)                                                                                                \
    F(curl_easy_strerror)                                                                                              \
    F(curl_free)                                                                                                       \
    F(curl_global_init)                                                                                                \
    F(curl_multi_add_handle)                                                                                           \
    F(curl_multi_assign)                                                                                               \
    F(curl_multi_cleanup)                                                                                              \
    F(curl_multi_info_read)                                                                                            \
    F(curl_multi_init)                                                                                                 \
    F(curl_multi_remove_handle)                                                                                        \
    F(curl_multi_setopt)                                                                                               \
    F(curl_multi_socket_action)                                                                                        \
    F(curl_slist_append)                                                                                               \
    F(curl_slist_free_all)                                                                                             \
    F(curl_url)                                                                                                        \
    F(curl_url_get)                                                                                                    \
    F(curl_url_set)                                                                                                    \
    F(curl_version)                                                                                                    \
    F(curl_version_info)

#define POINTER(name) static function name##_pointer;
FUNCTIONS(POINTER)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool is_loaded;

static bool find(void *library, const char *name, function *pointer) {
    *pointer = (function)dlsym(library, name);
    return *pointer != NULL;
}

static void load(void) {
    void *library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
#define FIND(name) &&find(library, #name, &name##_pointer)
    is_loaded = library FUNCTIONS(FIND);
}

bool curl_loader_load(void) {
    pthread_once(&once, load);
    return is_loaded;
}

static void require(void) {
    if (curl_loader_load()) return;
    fputs("URLSession needs libcurl.so.4, which this machine does not have.\n", stderr);
    exit(70);
}

#define FORWARD(name)                                                                                                  \
    long name(long a, long b, long c, long d, long e, long f) {                                                        \
        require();                                                                                                     \
        return name##_pointer(a, b, c, d, e, f);                                                                       \
    }
FUNCTIONS(FORWARD)
#else
bool curl_loader_load(void) { return true; }
#endif
