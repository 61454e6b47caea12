#include "internal.h"

#if PICTURE_LIBRARIES
#include <stdlib.h>

#include <libheif/heif.h>

#define HEIF_FUNCTIONS(F) \
    F(heif_context_alloc) F(heif_context_free) F(heif_context_get_primary_image_handle) \
    F(heif_context_read_from_reader) F(heif_decode_image) F(heif_decoding_options_alloc) \
    F(heif_decoding_options_free) F(heif_image_get_height) F(heif_image_get_plane_readonly) F(heif_image_get_width) \
    F(heif_image_handle_get_height) F(heif_image_handle_get_raw_color_profile) \
    F(heif_image_handle_get_raw_color_profile_size) F(heif_image_handle_get_width) \
    F(heif_image_handle_has_alpha_channel) F(heif_image_handle_release) F(heif_image_release)
PICTURE_LIBRARY(libheif, "libheif.so.1", HEIF_FUNCTIONS);

static int64_t position(void *file) { return ftello(file); }

static int read_bytes(void *data, size_t count, void *file) { return fread(data, 1, count, file) == count ? 0 : 1; }

static int seek(int64_t position, void *file) { return fseeko(file, position, SEEK_SET); }

static enum heif_reader_grow_status wait_for_size(int64_t size, void *file) {
    const off_t place = ftello(file);
    if (fseeko(file, 0, SEEK_END) != 0) return heif_reader_grow_status_size_beyond_eof;
    const off_t end = ftello(file);
    fseeko(file, place, SEEK_SET);
    return size <= end ? heif_reader_grow_status_size_reached : heif_reader_grow_status_size_beyond_eof;
}

static const struct heif_reader reader_functions = {
    .reader_api_version = 1,
    .get_position = position,
    .read = read_bytes,
    .seek = seek,
    .wait_for_file_size = wait_for_size,
};

typedef struct {
    FILE *file;
    struct heif_context *context;
    struct heif_image_handle *handle;
    struct heif_image *image;
    uint8_t *profile;
    uint8_t *row;
} heif_state;

static int check(struct heif_error error, picture_failure *failure) {
    switch (error.code) {
    case heif_error_Ok:
        return PICTURE_OK;
    case heif_error_Unsupported_feature:
    case heif_error_Unsupported_filetype:
        return picture_fail(failure, PICTURE_UNSUPPORTED, error.message);
    case heif_error_Memory_allocation_error:
        return picture_fail(failure, PICTURE_MEMORY, error.message);
    default:
        return picture_fail(failure, PICTURE_DAMAGED, error.message);
    }
}

static int open_picture(heif_state *state, const picture_source *source, picture_failure *failure) {
    state->file = picture_open(source, failure);
    if (!state->file) return failure->code;
    state->context = libheif.heif_context_alloc();
    if (!state->context) return picture_fail(failure, PICTURE_MEMORY, "no memory for a decoder");
    if (check(libheif.heif_context_read_from_reader(state->context, &reader_functions, state->file, NULL), failure))
        return failure->code;
    return check(libheif.heif_context_get_primary_image_handle(state->context, &state->handle), failure);
}

static void close_picture(heif_state *state) {
    free(state->row);
    free(state->profile);
    if (state->image) libheif.heif_image_release(state->image);
    if (state->handle) libheif.heif_image_handle_release(state->handle);
    if (state->context) libheif.heif_context_free(state->context);
    if (state->file) fclose(state->file);
}

static int read_profile(heif_state *state, picture_rows *rows, size_t most, picture_failure *failure) {
    const size_t count = libheif.heif_image_handle_get_raw_color_profile_size(state->handle);
    if (count == 0 || count > most) return PICTURE_OK;
    state->profile = malloc(count);
    if (!state->profile) return picture_fail(failure, PICTURE_MEMORY, "no memory for its color profile");
    if (check(libheif.heif_image_handle_get_raw_color_profile(state->handle, state->profile), failure)) return failure->code;
    rows->profile = state->profile;
    rows->profile_count = count;
    return PICTURE_OK;
}

static int read_rows(
    heif_state *state, const picture_options *options, const picture_sink *sink, picture_failure *failure
) {
    const int width = libheif.heif_image_handle_get_width(state->handle);
    const int height = libheif.heif_image_handle_get_height(state->handle);
    if (width <= 0 || height <= 0) return picture_fail(failure, PICTURE_DAMAGED, "the picture has no size");
    // Decoding needs memory for the planes of the picture and for the RGB pixels made from them.
    if ((uint64_t)width * (uint64_t)height * 5 > options->memory)
        return picture_fail(failure, PICTURE_MEMORY, "the picture is large");
    const bool has_alpha = libheif.heif_image_handle_has_alpha_channel(state->handle);

    struct heif_decoding_options *decoding = libheif.heif_decoding_options_alloc();
    if (!decoding) return picture_fail(failure, PICTURE_MEMORY, "no memory for a decoder");
    decoding->convert_hdr_to_8bit = 1;
    const struct heif_error error = libheif.heif_decode_image(
        state->handle, &state->image, heif_colorspace_RGB,
        has_alpha ? heif_chroma_interleaved_RGBA : heif_chroma_interleaved_RGB, decoding);
    libheif.heif_decoding_options_free(decoding);
    if (check(error, failure)) return failure->code;

    picture_rows rows = {
        .width = (uint32_t)libheif.heif_image_get_width(state->image, heif_channel_interleaved),
        .height = (uint32_t)libheif.heif_image_get_height(state->image, heif_channel_interleaved),
        .channels = 3,
    };
    int stride;
    const uint8_t *pixels = libheif.heif_image_get_plane_readonly(state->image, heif_channel_interleaved, &stride);
    if (!pixels) return picture_fail(failure, PICTURE_DAMAGED, "the picture has no pixels");
    if (read_profile(state, &rows, 4 << 20, failure)) return failure->code;
    if (!sink->start(sink->context, &rows)) return picture_fail(failure, PICTURE_STOPPED, "stopped");
    for (uint32_t y = 0; y < rows.height; y++) {
        uint8_t *row = (uint8_t *)pixels + (size_t)y * (size_t)stride;
        if (has_alpha) picture_over_white(row, rows.width, 3);
        if (!sink->row(sink->context, row)) return picture_fail(failure, PICTURE_STOPPED, "stopped");
    }
    return PICTURE_OK;
}

int picture_read_heif(
    const picture_source *source, const picture_options *options, const picture_sink *sink, picture_failure *failure
) {
    if (picture_load(&libheif_loader, failure)) return failure->code;
    heif_state state = {0};
    if (open_picture(&state, source, failure) == PICTURE_OK) read_rows(&state, options, sink, failure);
    close_picture(&state);
    return failure->code;
}

int picture_measure_heif(const picture_source *source, uint32_t *width, uint32_t *height, picture_failure *failure) {
    if (picture_load(&libheif_loader, failure)) return failure->code;
    heif_state state = {0};
    if (open_picture(&state, source, failure) == PICTURE_OK) {
        *width = (uint32_t)libheif.heif_image_handle_get_width(state.handle);
        *height = (uint32_t)libheif.heif_image_handle_get_height(state.handle);
    }
    close_picture(&state);
    return failure->code;
}
#endif
