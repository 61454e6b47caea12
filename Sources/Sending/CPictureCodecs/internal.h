#ifndef PICTURE_INTERNAL_H
#define PICTURE_INTERNAL_H

#include <pthread.h>
#include <stdio.h>

#include "PictureCodecs.h"

/// Whether this module was compiled with the headers of all libraries.
#if !defined(__APPLE__) && __has_include(<jpeglib.h>) && __has_include(<png.h>) && \
    __has_include(<webp/demux.h>) && __has_include(<libheif/heif.h>)
#define PICTURE_LIBRARIES 1
#else
#define PICTURE_LIBRARIES 0
#endif

/// Opens a source for reading. Returns NULL and fills in the failure if the source cannot be opened.
FILE *picture_open(const picture_source *, picture_failure *);
int picture_fail(picture_failure *, int code, const char *message);
/// Blends a row of grey and alpha, or of RGBA, with white, in place.
void picture_over_white(uint8_t *row, uint32_t width, uint32_t color_channels);

/// A shared library that is loaded for the first picture. A program without pictures starts faster without these
/// libraries and the twenty that they load in turn.
typedef struct {
    const char *file;
    const char *const *names;
    /// The pointers to fill, one for each of the names.
    void **functions;
    size_t count;
    pthread_mutex_t mutex;
    bool is_loaded;
} picture_loader;

/// Loads a library, and does nothing in later calls. Fails if the library is not installed on this machine.
int picture_load(picture_loader *, picture_failure *);

#define PICTURE_POINTER(function) __typeof__(function) *function;
#define PICTURE_NAME(function) #function,
/// Declares `library`, which holds pointers to the functions, and `library_loader`, which fills `library`.
#define PICTURE_LIBRARY(library, file, FUNCTIONS)                                                                      \
    static struct {                                                                                                    \
        FUNCTIONS(PICTURE_POINTER)                                                                                     \
    } library;                                                                                                         \
    static const char *const library##_names[] = {FUNCTIONS(PICTURE_NAME)};                                            \
    static picture_loader library##_loader = {                                                                         \
        file, library##_names, (void **)&library, sizeof library / sizeof(void *), PTHREAD_MUTEX_INITIALIZER, false}

#endif
