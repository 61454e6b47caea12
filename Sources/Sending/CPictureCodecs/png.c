#include "internal.h"

#if PICTURE_LIBRARIES
#include <setjmp.h>
#include <stdlib.h>

#include <png.h>

#define PNG_FUNCTIONS(F) \
    F(png_create_info_struct) F(png_create_read_struct) F(png_destroy_read_struct) F(png_get_channels) \
    F(png_get_error_ptr) F(png_get_iCCP) F(png_get_image_height) F(png_get_image_width) F(png_get_rowbytes) \
    F(png_init_io) F(png_longjmp) F(png_read_end) F(png_read_info) F(png_read_row) F(png_read_update_info) \
    F(png_set_chunk_cache_max) F(png_set_expand) F(png_set_interlace_handling) F(png_set_longjmp_fn) \
    F(png_set_scale_16) F(png_set_user_limits)
PICTURE_LIBRARY(libpng, "libpng16.so.16", PNG_FUNCTIONS);

typedef struct {
    png_structp png;
    png_infop info;
    FILE *file;
    uint8_t *pixels;
    picture_failure *failure;
} png_reader;

static void on_error(png_structp png, png_const_charp message) {
    png_reader *reader = libpng.png_get_error_ptr(png);
    picture_fail(reader->failure, PICTURE_DAMAGED, message);
    libpng.png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp message) {
    (void)png;
    (void)message;
}

static int stopped(png_reader *reader) { return picture_fail(reader->failure, PICTURE_STOPPED, "stopped"); }

static int read_rows(png_reader *reader, const picture_options *options, const picture_sink *sink) {
    png_structp png = reader->png;
    png_infop info = reader->info;
    libpng.png_init_io(png, reader->file);
    libpng.png_set_user_limits(png, 65535, 65535);
    // Text and palette chunks are skipped: small chunks can inflate to gigabytes. In libpng, 1 means none, and 0 all.
    libpng.png_set_chunk_cache_max(png, 1);
    libpng.png_read_info(png, info);
    libpng.png_set_expand(png);
    libpng.png_set_scale_16(png);
    const bool is_interlaced = libpng.png_set_interlace_handling(png) > 1;
    libpng.png_read_update_info(png, info);

    const uint32_t channels = libpng.png_get_channels(png, info);
    const bool has_alpha = channels % 2 == 0;
    const size_t stride = libpng.png_get_rowbytes(png, info);
    picture_rows rows = {
        .width = libpng.png_get_image_width(png, info),
        .height = libpng.png_get_image_height(png, info),
        .channels = has_alpha ? channels - 1 : channels,
    };
    png_charp name;
    png_bytep profile;
    png_uint_32 profile_count;
    int method;
    if (libpng.png_get_iCCP(png, info, &name, &method, &profile, &profile_count) == PNG_INFO_iCCP) {
        rows.profile = profile;
        rows.profile_count = profile_count;
    }

    // An interlaced picture arrives in seven passes, so all its rows are kept in memory.
    const size_t held = is_interlaced ? rows.height : 1;
    if (held > options->memory / stride)
        return picture_fail(reader->failure, PICTURE_MEMORY, "the picture is interlaced and large");
    reader->pixels = malloc(stride * held);
    if (!reader->pixels) return picture_fail(reader->failure, PICTURE_MEMORY, "no memory for its pixels");
    if (!sink->start(sink->context, &rows)) return stopped(reader);
    for (int pass = 0; is_interlaced && pass < 7; pass++) {
        for (uint32_t y = 0; y < rows.height; y++) {
            libpng.png_read_row(png, reader->pixels + stride * y, NULL);
            if (y % 256 == 0 && !sink->proceed(sink->context)) return stopped(reader);
        }
    }
    for (uint32_t y = 0; y < rows.height; y++) {
        uint8_t *row = is_interlaced ? reader->pixels + stride * y : reader->pixels;
        if (!is_interlaced) libpng.png_read_row(png, row, NULL);
        if (has_alpha) picture_over_white(row, rows.width, rows.channels);
        if (!sink->row(sink->context, row)) return stopped(reader);
    }
    libpng.png_read_end(png, NULL);
    return PICTURE_OK;
}

int picture_read_png(
    const picture_source *source, const picture_options *options, const picture_sink *sink, picture_failure *failure
) {
    if (picture_load(&libpng_loader, failure)) return failure->code;
    png_reader *reader = calloc(1, sizeof *reader);
    if (!reader) return picture_fail(failure, PICTURE_MEMORY, "no memory for a decoder");
    reader->failure = failure;
    reader->file = picture_open(source, failure);
    if (reader->file) {
        reader->png = libpng.png_create_read_struct(PNG_LIBPNG_VER_STRING, reader, on_error, on_warning);
        reader->info = reader->png ? libpng.png_create_info_struct(reader->png) : NULL;
        if (!reader->info)
            picture_fail(failure, PICTURE_MEMORY, "no memory for a decoder");
        else if (setjmp(*libpng.png_set_longjmp_fn(reader->png, longjmp, sizeof(jmp_buf))) == 0)
            read_rows(reader, options, sink);
        libpng.png_destroy_read_struct(&reader->png, &reader->info, NULL);
        fclose(reader->file);
    }
    free(reader->pixels);
    free(reader);
    return failure->code;
}
#endif
