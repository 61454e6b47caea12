#include "internal.h"

#if PICTURE_LIBRARIES
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

int picture_fail(picture_failure *failure, int code, const char *message) {
    failure->code = code;
    snprintf(failure->message, sizeof failure->message, "%s", message);
    return code;
}

int picture_load(picture_loader *loader, picture_failure *failure) {
    failure->code = PICTURE_OK;
    pthread_mutex_lock(&loader->mutex);
    if (!loader->is_loaded) {
        void *library = dlopen(loader->file, RTLD_NOW | RTLD_LOCAL);
        loader->is_loaded = library != NULL;
        if (!library) picture_fail(failure, PICTURE_MISSING, dlerror());
        for (size_t i = 0; loader->is_loaded && i < loader->count; i++) {
            loader->functions[i] = dlsym(library, loader->names[i]);
            if (loader->functions[i]) continue;
            loader->is_loaded = false;
            picture_fail(failure, PICTURE_MISSING, dlerror());
        }
    }
    pthread_mutex_unlock(&loader->mutex);
    return failure->code;
}

FILE *picture_open(const picture_source *source, picture_failure *failure) {
    FILE *file = source->path ? fopen(source->path, "rbe") : fmemopen((void *)source->bytes, source->count, "rb");
    if (!file) picture_fail(failure, PICTURE_UNREADABLE, strerror(errno));
    return file;
}

void picture_over_white(uint8_t *row, uint32_t width, uint32_t color_channels) {
    const uint8_t *in = row;
    uint8_t *out = row;
    for (uint32_t x = 0; x < width; x++) {
        const unsigned alpha = in[color_channels];
        for (uint32_t channel = 0; channel < color_channels; channel++)
            *out++ = (uint8_t)((in[channel] * alpha + 255 * (255 - alpha) + 127) / 255);
        in += color_channels + 1;
    }
}

void picture_free(uint8_t *bytes) { free(bytes); }

bool picture_libraries(void) { return true; }
#else
bool picture_libraries(void) { return false; }

// These functions satisfy the linker. No code calls them when the libraries are missing.
static int missing(picture_failure *failure) {
    *failure = (picture_failure){PICTURE_MISSING, "compiled without the library's headers"};
    return failure->code;
}

int picture_read_jpeg(
    const picture_source *source, const picture_options *options, const picture_sink *sink, picture_failure *failure
) {
    (void)source, (void)options, (void)sink;
    return missing(failure);
}

int picture_read_png(
    const picture_source *source, const picture_options *options, const picture_sink *sink, picture_failure *failure
) {
    return picture_read_jpeg(source, options, sink, failure);
}

int picture_read_webp(
    const picture_source *source, const picture_options *options, const picture_sink *sink, picture_failure *failure
) {
    return picture_read_jpeg(source, options, sink, failure);
}

int picture_read_heif(
    const picture_source *source, const picture_options *options, const picture_sink *sink, picture_failure *failure
) {
    return picture_read_jpeg(source, options, sink, failure);
}

int picture_measure_heif(const picture_source *source, uint32_t *width, uint32_t *height, picture_failure *failure) {
    (void)source, (void)width, (void)height;
    return missing(failure);
}

int picture_write_jpeg(
    const uint8_t *pixels, const picture_rows *rows, int quality, bool progressive, const picture_sink *sink,
    uint8_t **bytes, size_t *count, picture_failure *failure
) {
    (void)pixels, (void)rows, (void)quality, (void)progressive, (void)sink, (void)bytes, (void)count;
    return missing(failure);
}

void picture_free(uint8_t *bytes) { (void)bytes; }
#endif
