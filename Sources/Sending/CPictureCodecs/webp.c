#include "internal.h"

#if PICTURE_LIBRARIES
#include <stdlib.h>

#include <webp/decode.h>
#include <webp/demux.h>

#define WEBP_FUNCTIONS(F) \
    F(WebPDecode) F(WebPFreeDecBuffer) F(WebPGetFeaturesInternal) F(WebPInitDecoderConfigInternal)
PICTURE_LIBRARY(libwebp, "libwebp.so.7", WEBP_FUNCTIONS);
#define DEMUX_FUNCTIONS(F) \
    F(WebPDemuxDelete) F(WebPDemuxGetChunk) F(WebPDemuxInternal) F(WebPDemuxReleaseChunkIterator)
PICTURE_LIBRARY(libwebpdemux, "libwebpdemux.so.2", DEMUX_FUNCTIONS);

static int fail(picture_failure *failure, VP8StatusCode status) {
    switch (status) {
    case VP8_STATUS_OUT_OF_MEMORY:
        return picture_fail(failure, PICTURE_MEMORY, "no memory for its pixels");
    case VP8_STATUS_UNSUPPORTED_FEATURE:
        return picture_fail(failure, PICTURE_UNSUPPORTED, "the picture uses a feature that libwebp does not have");
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA:
        return picture_fail(failure, PICTURE_DAMAGED, "the file ends too early");
    default:
        return picture_fail(failure, PICTURE_DAMAGED, "the data is not WebP");
    }
}

static int send_rows(
    WebPDecoderConfig *config, const WebPData *data, const picture_sink *sink, picture_failure *failure
) {
    const WebPRGBABuffer *pixels = &config->output.u.RGBA;
    const bool has_alpha = config->input.has_alpha;
    picture_rows rows = {
        .width = (uint32_t)config->output.width, .height = (uint32_t)config->output.height, .channels = 3};
    // The demuxer refuses damaged files that the decoder may still read. The picture then has no color profile.
    WebPDemuxer *demuxer = libwebpdemux.WebPDemuxInternal(data, 0, NULL, WEBP_DEMUX_ABI_VERSION);
    WebPChunkIterator chunk = {0};
    if (demuxer && libwebpdemux.WebPDemuxGetChunk(demuxer, "ICCP", 1, &chunk)) {
        rows.profile = chunk.chunk.bytes;
        rows.profile_count = chunk.chunk.size;
    }
    bool goes_on = sink->start(sink->context, &rows);
    for (uint32_t y = 0; goes_on && y < rows.height; y++) {
        uint8_t *row = pixels->rgba + (size_t)y * (size_t)pixels->stride;
        if (has_alpha) picture_over_white(row, rows.width, 3);
        goes_on = sink->row(sink->context, row);
    }
    if (demuxer) {
        libwebpdemux.WebPDemuxReleaseChunkIterator(&chunk);
        libwebpdemux.WebPDemuxDelete(demuxer);
    }
    return goes_on ? PICTURE_OK : picture_fail(failure, PICTURE_STOPPED, "stopped");
}

static int decode(
    const WebPData *data, const picture_options *options, const picture_sink *sink, picture_failure *failure
) {
    WebPDecoderConfig config;
    if (!libwebp.WebPInitDecoderConfigInternal(&config, WEBP_DECODER_ABI_VERSION))
        return picture_fail(failure, PICTURE_UNSUPPORTED, "another libwebp is installed");
    VP8StatusCode status = libwebp.WebPGetFeaturesInternal(data->bytes, data->size, &config.input, WEBP_DECODER_ABI_VERSION);
    if (status != VP8_STATUS_OK) return fail(failure, status);
    if (config.input.has_animation) return picture_fail(failure, PICTURE_UNSUPPORTED, "the picture is animated");

    const uint32_t width = (uint32_t)config.input.width, height = (uint32_t)config.input.height;
    const uint32_t edge = width > height ? width : height;
    uint32_t divisor = 8;
    while (divisor > 1 && edge / divisor < options->smallest_edge) divisor /= 2;
    if (divisor > 1) {
        config.options.use_scaling = 1;
        config.options.scaled_width = (int)((width + divisor - 1) / divisor);
        config.options.scaled_height = (int)((height + divisor - 1) / divisor);
    }
    config.output.colorspace = config.input.has_alpha ? MODE_RGBA : MODE_RGB;
    if ((uint64_t)width * height * 4 > options->memory)
        return picture_fail(failure, PICTURE_MEMORY, "the picture is large");
    status = libwebp.WebPDecode(data->bytes, data->size, &config);
    const int code = status == VP8_STATUS_OK ? send_rows(&config, data, sink, failure) : fail(failure, status);
    libwebp.WebPFreeDecBuffer(&config.output);
    return code;
}

static uint8_t *read_all(FILE *file, size_t most, size_t *count, picture_failure *failure) {
    uint8_t *bytes = NULL;
    size_t capacity = 0;
    *count = 0;
    for (;;) {
        if (*count == capacity) {
            capacity = capacity ? capacity * 2 : 1 << 20;
            uint8_t *larger = capacity <= most ? realloc(bytes, capacity) : NULL;
            if (!larger) {
                free(bytes);
                picture_fail(failure, PICTURE_MEMORY, "the file is large");
                return NULL;
            }
            bytes = larger;
        }
        const size_t read = fread(bytes + *count, 1, capacity - *count, file);
        *count += read;
        if (read == 0) break;
    }
    if (ferror(file)) {
        free(bytes);
        picture_fail(failure, PICTURE_UNREADABLE, "reading failed");
        return NULL;
    }
    return bytes;
}

int picture_read_webp(
    const picture_source *source, const picture_options *options, const picture_sink *sink, picture_failure *failure
) {
    if (picture_load(&libwebp_loader, failure) || picture_load(&libwebpdemux_loader, failure)) return failure->code;
    if (!source->path) {
        const WebPData data = {source->bytes, source->count};
        return decode(&data, options, sink, failure);
    }
    FILE *file = picture_open(source, failure);
    if (!file) return failure->code;
    size_t count;
    uint8_t *bytes = read_all(file, options->memory, &count, failure);
    fclose(file);
    if (!bytes) return failure->code;
    const WebPData data = {bytes, count};
    const int code = decode(&data, options, sink, failure);
    free(bytes);
    return code;
}
#endif
