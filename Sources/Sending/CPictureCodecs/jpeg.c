#include "internal.h"

#if PICTURE_LIBRARIES
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

// The file name of libjpeg contains the version of its interface.
#if JPEG_LIB_VERSION >= 80
#define JPEG_FILE "libjpeg.so.8"
#else
#define JPEG_FILE "libjpeg.so.62"
#endif
#define JPEG_FUNCTIONS(F) \
    F(jpeg_CreateCompress) F(jpeg_CreateDecompress) F(jpeg_destroy_compress) F(jpeg_destroy_decompress) \
    F(jpeg_finish_compress) F(jpeg_finish_decompress) F(jpeg_mem_dest) F(jpeg_read_header) F(jpeg_read_icc_profile) \
    F(jpeg_read_scanlines) F(jpeg_save_markers) F(jpeg_set_defaults) F(jpeg_set_quality) F(jpeg_simple_progression) \
    F(jpeg_start_compress) F(jpeg_start_decompress) F(jpeg_std_error) F(jpeg_stdio_src) F(jpeg_write_icc_profile) \
    F(jpeg_write_scanlines)
PICTURE_LIBRARY(libjpeg, JPEG_FILE, JPEG_FUNCTIONS);

typedef struct {
    struct jpeg_error_mgr base;
    jmp_buf escape;
    picture_failure *failure;
} error_manager;

typedef struct {
    struct jpeg_progress_mgr base;
    const picture_sink *sink;
} progress_manager;

// A progressive JPEG may have thousands of scans of a few bytes each. Each scan costs a pass over the whole picture.
enum { MOST_SCANS = 500 };

_Noreturn static void leave(j_common_ptr common, int code) {
    error_manager *errors = (error_manager *)common->err;
    char message[JMSG_LENGTH_MAX];
    errors->base.format_message(common, message);
    picture_fail(errors->failure, code, message);
    longjmp(errors->escape, 1);
}

static void on_error(j_common_ptr common) {
    switch (common->err->msg_code) {
    case JERR_OUT_OF_MEMORY:
    case JERR_NO_BACKING_STORE:
        leave(common, PICTURE_MEMORY);
    case JERR_BAD_PRECISION:
    case JERR_SOF_UNSUPPORTED:
    case JERR_ARITH_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_BAD_J_COLORSPACE:
    case JERR_CCIR601_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
        leave(common, PICTURE_UNSUPPORTED);
    default:
        leave(common, PICTURE_DAMAGED);
    }
}

static void on_message(j_common_ptr common, int level) {
    if (level >= 0) return;
    switch (common->err->msg_code) {
    // These warnings are about extra bytes between segments and the markers of other programs. No pixels are lost.
    case JWRN_EXTRANEOUS_DATA:
    case JWRN_ADOBE_XFORM:
    case JWRN_JFIF_MAJOR:
    case JWRN_BOGUS_ICC:
        return;
    default:
        leave(common, PICTURE_DAMAGED);
    }
}

_Noreturn static void stop(j_common_ptr common) {
    error_manager *errors = (error_manager *)common->err;
    picture_fail(errors->failure, PICTURE_STOPPED, "stopped");
    longjmp(errors->escape, 1);
}

static void on_progress(j_common_ptr common) {
    const progress_manager *progress = (const progress_manager *)common->progress;
    if (common->is_decompressor && ((j_decompress_ptr)common)->input_scan_number > MOST_SCANS) {
        error_manager *errors = (error_manager *)common->err;
        picture_fail(errors->failure, PICTURE_DAMAGED, "the picture has more than 500 scans");
        longjmp(errors->escape, 1);
    }
    if (!progress->sink->proceed(progress->sink->context)) stop(common);
}

static void prepare(
    error_manager *errors, progress_manager *progress, const picture_sink *sink, picture_failure *failure
) {
    libjpeg.jpeg_std_error(&errors->base);
    errors->base.error_exit = on_error;
    errors->base.emit_message = on_message;
    errors->failure = failure;
    memset(progress, 0, sizeof *progress);
    progress->base.progress_monitor = on_progress;
    progress->sink = sink;
}

static void cmyk_to_rgb(uint8_t *row, uint32_t width, bool is_inverted) {
    const uint8_t *in = row;
    uint8_t *out = row;
    for (uint32_t x = 0; x < width; x++, in += 4) {
        const unsigned black = is_inverted ? in[3] : 255u - in[3];
        for (int channel = 0; channel < 3; channel++) {
            const unsigned ink = is_inverted ? in[channel] : 255u - in[channel];
            *out++ = (uint8_t)((ink * black + 127) / 255);
        }
    }
}

typedef struct {
    struct jpeg_decompress_struct decoder;
    error_manager errors;
    progress_manager progress;
    FILE *file;
    uint8_t *row;
    JOCTET *profile;
} jpeg_reader;

static int read_rows(jpeg_reader *reader, const picture_options *options, const picture_sink *sink) {
    j_decompress_ptr decoder = &reader->decoder;
    libjpeg.jpeg_stdio_src(decoder, reader->file);
    libjpeg.jpeg_save_markers(decoder, JPEG_APP0 + 2, 0xFFFF);
    libjpeg.jpeg_read_header(decoder, TRUE);
    decoder->mem->max_memory_to_use = (long)options->memory;

    // Scaling by powers of two has fast transforms. Scaling by other factors is slower than decoding the whole picture.
    const uint32_t edge = decoder->image_width > decoder->image_height ? decoder->image_width : decoder->image_height;
    decoder->scale_num = 1;
    decoder->scale_denom = 8;
    while (decoder->scale_denom > 1 && edge / decoder->scale_denom < options->smallest_edge) decoder->scale_denom /= 2;

    const bool is_cmyk = decoder->jpeg_color_space == JCS_CMYK || decoder->jpeg_color_space == JCS_YCCK;
    const bool is_grey = decoder->jpeg_color_space == JCS_GRAYSCALE;
    decoder->out_color_space = is_cmyk ? JCS_CMYK : is_grey ? JCS_GRAYSCALE : JCS_RGB;

    picture_rows rows = {.channels = is_grey ? 1 : 3};
    unsigned profile_count = 0;
    if (libjpeg.jpeg_read_icc_profile(decoder, &reader->profile, &profile_count)) {
        rows.profile = reader->profile;
        rows.profile_count = profile_count;
    }
    libjpeg.jpeg_start_decompress(decoder);
    rows.width = decoder->output_width;
    rows.height = decoder->output_height;
    reader->row = malloc((size_t)rows.width * (size_t)decoder->output_components);
    if (!reader->row) return picture_fail(reader->errors.failure, PICTURE_MEMORY, "no memory for a row");
    if (!sink->start(sink->context, &rows)) stop((j_common_ptr)decoder);
    while (decoder->output_scanline < decoder->output_height) {
        JSAMPROW row = reader->row;
        libjpeg.jpeg_read_scanlines(decoder, &row, 1);
        if (is_cmyk) cmyk_to_rgb(row, rows.width, decoder->saw_Adobe_marker);
        if (!sink->row(sink->context, row)) stop((j_common_ptr)decoder);
    }
    libjpeg.jpeg_finish_decompress(decoder);
    return PICTURE_OK;
}

int picture_read_jpeg(
    const picture_source *source, const picture_options *options, const picture_sink *sink, picture_failure *failure
) {
    if (picture_load(&libjpeg_loader, failure)) return failure->code;
    jpeg_reader *reader = calloc(1, sizeof *reader);
    if (!reader) return picture_fail(failure, PICTURE_MEMORY, "no memory for a decoder");
    reader->file = picture_open(source, failure);
    if (!reader->file) {
        free(reader);
        return failure->code;
    }
    prepare(&reader->errors, &reader->progress, sink, failure);
    reader->decoder.err = &reader->errors.base;
    if (setjmp(reader->errors.escape) == 0) {
        libjpeg.jpeg_CreateDecompress(&reader->decoder, JPEG_LIB_VERSION, sizeof reader->decoder);
        reader->decoder.progress = &reader->progress.base;
        read_rows(reader, options, sink);
    }
    libjpeg.jpeg_destroy_decompress(&reader->decoder);
    free(reader->row);
    free(reader->profile);
    fclose(reader->file);
    free(reader);
    return failure->code;
}

typedef struct {
    struct jpeg_compress_struct encoder;
    error_manager errors;
    progress_manager progress;
    uint8_t *bytes;
    unsigned long count;
} jpeg_writer;

static void write_rows(
    jpeg_writer *writer, const uint8_t *pixels, const picture_rows *rows, int quality, bool progressive
) {
    j_compress_ptr encoder = &writer->encoder;
    libjpeg.jpeg_mem_dest(encoder, &writer->bytes, &writer->count);
    encoder->image_width = rows->width;
    encoder->image_height = rows->height;
    encoder->input_components = (int)rows->channels;
    encoder->in_color_space = rows->channels == 1 ? JCS_GRAYSCALE : JCS_RGB;
    libjpeg.jpeg_set_defaults(encoder);
    libjpeg.jpeg_set_quality(encoder, quality, TRUE);
    encoder->optimize_coding = TRUE;
    if (progressive) libjpeg.jpeg_simple_progression(encoder);
    libjpeg.jpeg_start_compress(encoder, TRUE);
    if (rows->profile) libjpeg.jpeg_write_icc_profile(encoder, rows->profile, (unsigned)rows->profile_count);
    const size_t stride = (size_t)rows->width * rows->channels;
    while (encoder->next_scanline < encoder->image_height) {
        JSAMPROW row = (JSAMPROW)pixels + stride * encoder->next_scanline;
        libjpeg.jpeg_write_scanlines(encoder, &row, 1);
    }
    libjpeg.jpeg_finish_compress(encoder);
}

int picture_write_jpeg(
    const uint8_t *pixels, const picture_rows *rows, int quality, bool progressive, const picture_sink *sink,
    uint8_t **bytes, size_t *count, picture_failure *failure
) {
    if (picture_load(&libjpeg_loader, failure)) return failure->code;
    jpeg_writer *writer = calloc(1, sizeof *writer);
    if (!writer) return picture_fail(failure, PICTURE_MEMORY, "no memory for an encoder");
    prepare(&writer->errors, &writer->progress, sink, failure);
    writer->encoder.err = &writer->errors.base;
    if (setjmp(writer->errors.escape) == 0) {
        libjpeg.jpeg_CreateCompress(&writer->encoder, JPEG_LIB_VERSION, sizeof writer->encoder);
        writer->encoder.progress = &writer->progress.base;
        write_rows(writer, pixels, rows, quality, progressive);
    }
    // libjpeg replaces the output buffer as it grows, and passes on the latest buffer only at the end of the picture.
    if (failure->code != PICTURE_OK && writer->bytes) writer->encoder.dest->term_destination(&writer->encoder);
    libjpeg.jpeg_destroy_compress(&writer->encoder);
    if (failure->code == PICTURE_OK) {
        *bytes = writer->bytes;
        *count = writer->count;
    } else {
        free(writer->bytes);
    }
    free(writer);
    return failure->code;
}
#endif
