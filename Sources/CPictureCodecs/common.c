#ifdef POSTCARD_PICTURES
#include "internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int picture_fail(picture_failure *failure, int code, const char *message) {
    failure->code = code;
    snprintf(failure->message, sizeof failure->message, "%s", message);
    return code;
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
#endif
