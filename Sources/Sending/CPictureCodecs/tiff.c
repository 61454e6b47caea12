#include "internal.h"

#if PICTURE_LIBRARIES && __has_include(<tiffio.h>)
#include <tiffio.h>
#endif

// Versions of libtiff before 4.5 have one error handler for the whole process, and no memory limit.
#if PICTURE_LIBRARIES && defined(TIFFLIB_VERSION) && TIFFLIB_VERSION >= 20221213
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define TIFF_FUNCTIONS(F) \
    F(TIFFClientOpenExt) F(TIFFClose) F(TIFFGetField) F(TIFFGetFieldDefaulted) F(TIFFIsTiled) F(TIFFOpenOptionsAlloc) \
    F(TIFFOpenOptionsFree) F(TIFFOpenOptionsSetErrorHandlerExtR) F(TIFFOpenOptionsSetMaxSingleMemAlloc) \
    F(TIFFOpenOptionsSetWarningHandlerExtR) F(TIFFRGBAImageBegin) F(TIFFRGBAImageEnd) F(TIFFRGBAImageGet) \
    F(TIFFRGBAImageOK) F(TIFFReadDirectory)
PICTURE_LIBRARY(libtiff, "libtiff.so.6", TIFF_FUNCTIONS);

// These callbacks let libtiff read a C file.

static tmsize_t read_bytes(thandle_t file, void *bytes, tmsize_t count) {
    return (tmsize_t)fread(bytes, 1, (size_t)count, file);
}

static tmsize_t write_bytes(thandle_t file, void *bytes, tmsize_t count) {
    (void)file, (void)bytes, (void)count;
    return 0;
}

static toff_t seek(thandle_t file, toff_t offset, int origin) {
    return fseeko(file, (off_t)offset, origin) == 0 ? (toff_t)ftello(file) : (toff_t)-1;
}

static int leave_open(thandle_t file) {
    (void)file;
    return 0;
}

static toff_t size_of(thandle_t file) {
    const off_t place = ftello(file);
    const off_t end = fseeko(file, 0, SEEK_END) == 0 ? ftello(file) : 0;
    fseeko(file, place, SEEK_SET);
    return (toff_t)end;
}

/// Keeps the latest message. Returning 1 keeps other handlers from getting the message.
static int on_error(TIFF *tiff, void *message, const char *module, const char *format, va_list values) {
    (void)tiff, (void)module;
    vsnprintf(message, 200, format, values);
    return 1;
}

static int on_warning(TIFF *tiff, void *message, const char *module, const char *format, va_list values) {
    (void)tiff, (void)message, (void)module, (void)format, (void)values;
    return 1;
}

typedef struct {
    FILE *file;
    TIFF *tiff;
    uint32_t *pixels;
    /// The latest message of libtiff.
    char message[200];
} tiff_state;

static int fail(tiff_state *state, int code, const char *message, picture_failure *failure) {
    return picture_fail(failure, code, state->message[0] ? state->message : message);
}

static int open_picture(tiff_state *state, const picture_source *source, size_t memory, picture_failure *failure) {
    state->file = picture_open(source, failure);
    if (!state->file) return failure->code;
    TIFFOpenOptions *options = libtiff.TIFFOpenOptionsAlloc();
    if (!options) return picture_fail(failure, PICTURE_MEMORY, "no memory for a decoder");
    libtiff.TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, state->message);
    libtiff.TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, NULL);
    libtiff.TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)memory);
    // In the mode, "m" disables memory mapping.
    state->tiff = libtiff.TIFFClientOpenExt(
        "picture", "rm", state->file, read_bytes, write_bytes, seek, leave_open, size_of, NULL, NULL, options);
    libtiff.TIFFOpenOptionsFree(options);
    return state->tiff ? PICTURE_OK : fail(state, PICTURE_DAMAGED, "it has no directory", failure);
}

static void close_picture(tiff_state *state) {
    free(state->pixels);
    if (state->tiff) libtiff.TIFFClose(state->tiff);
    if (state->file) fclose(state->file);
}

/// Whether the current directory has a page, and not a smaller copy or a mask of a page.
static bool is_page(TIFF *tiff) {
    uint32_t kind = 0;
    return !libtiff.TIFFGetField(tiff, TIFFTAG_SUBFILETYPE, &kind) || !(kind & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK));
}

/// Sends the rows of a band of pixels whose colors are multiplied by their alpha.
static int send_band(const uint32_t *pixels, uint32_t width, uint32_t count, const picture_sink *sink) {
    for (uint32_t y = 0; y < count; y++) {
        const uint32_t *in = pixels + (size_t)y * width;
        // The three bytes of a pixel replace its four bytes in place.
        uint8_t *const row = (uint8_t *)in;
        uint8_t *out = row;
        for (uint32_t x = 0; x < width; x++) {
            const uint32_t pixel = in[x], white = 255 - TIFFGetA(pixel);
            for (int shift = 0; shift < 24; shift += 8) {
                const uint32_t value = (pixel >> shift & 255) + white;
                *out++ = (uint8_t)(value < 255 ? value : 255);
            }
        }
        if (!sink->row(sink->context, row)) return PICTURE_STOPPED;
    }
    return PICTURE_OK;
}

/// The number of rows to decode at a time: whole strips or tiles, and enough rows to be fast.
static uint32_t band_height(TIFF *tiff, uint32_t height) {
    uint32_t unit = 0;
    if (libtiff.TIFFIsTiled(tiff))
        libtiff.TIFFGetField(tiff, TIFFTAG_TILELENGTH, &unit);
    else
        libtiff.TIFFGetFieldDefaulted(tiff, TIFFTAG_ROWSPERSTRIP, &unit);
    if (unit == 0 || unit >= height) return height;
    const uint32_t units = unit < 64 ? (63 + unit) / unit : 1;
    return unit * units < height ? unit * units : height;
}

static int read_rows(
    tiff_state *state, TIFFRGBAImage *image, const picture_options *options, const picture_sink *sink,
    picture_failure *failure
) {
    // The rows are sent without applying the orientation. The caller reads the orientation from the directory.
    image->orientation = image->req_orientation = ORIENTATION_TOPLEFT;
    const uint32_t width = image->width, height = image->height;
    if (width == 0 || height == 0) return picture_fail(failure, PICTURE_DAMAGED, "the picture has no size");
    const uint32_t band = band_height(state->tiff, height);
    if ((uint64_t)width * band * sizeof(uint32_t) > options->memory)
        return picture_fail(failure, PICTURE_MEMORY, "the picture is large, and is one strip");
    state->pixels = malloc((size_t)width * band * sizeof(uint32_t));
    if (!state->pixels) return picture_fail(failure, PICTURE_MEMORY, "no memory for its pixels");

    picture_rows rows = {.width = width, .height = height, .channels = 3};
    uint32_t profile_count = 0;
    void *profile = NULL;
    if (libtiff.TIFFGetField(state->tiff, TIFFTAG_ICCPROFILE, &profile_count, &profile)) {
        rows.profile = profile;
        rows.profile_count = profile_count;
    }
    if (!sink->start(sink->context, &rows)) return picture_fail(failure, PICTURE_STOPPED, "stopped");
    for (uint32_t y = 0; y < height; y += band) {
        const uint32_t count = height - y < band ? height - y : band;
        image->row_offset = (int)y;
        if (!libtiff.TIFFRGBAImageGet(image, state->pixels, width, count))
            return fail(state, PICTURE_DAMAGED, "its pixels cannot be read", failure);
        if (!sink->proceed(sink->context) || send_band(state->pixels, width, count, sink))
            return picture_fail(failure, PICTURE_STOPPED, "stopped");
    }
    return PICTURE_OK;
}

int picture_read_tiff(
    const picture_source *source, const picture_options *options, const picture_sink *sink, picture_failure *failure
) {
    if (picture_load(&libtiff_loader, failure)) return failure->code;
    tiff_state state = {0};
    if (open_picture(&state, source, options->memory, failure) == PICTURE_OK) {
        char reason[1024] = "";
        TIFFRGBAImage image;
        if (!libtiff.TIFFRGBAImageOK(state.tiff, reason)) {
            picture_fail(failure, PICTURE_UNSUPPORTED, reason);
        } else if (!libtiff.TIFFRGBAImageBegin(&image, state.tiff, 1, reason)) {
            picture_fail(failure, PICTURE_UNSUPPORTED, reason);
        } else {
            read_rows(&state, &image, options, sink, failure);
            libtiff.TIFFRGBAImageEnd(&image);
        }
    }
    close_picture(&state);
    return failure->code;
}

/// The maximum number of directories to examine for pages.
static const int most_directories = 100;

int picture_measure_tiff(const picture_source *source, picture_tiff_head *head, picture_failure *failure) {
    if (picture_load(&libtiff_loader, failure)) return failure->code;
    tiff_state state = {0};
    const uint8_t *version = NULL;
    if (open_picture(&state, source, 64 << 20, failure) != PICTURE_OK) {
        // The failure already has its message.
    } else if (!is_page(state.tiff) || libtiff.TIFFGetField(state.tiff, TIFFTAG_DNGVERSION, &version)) {
        // In a camera's raw file, the first picture is a preview.
        picture_fail(failure, PICTURE_UNSUPPORTED, "its first picture is a smaller copy");
    } else {
        uint16_t orientation = ORIENTATION_TOPLEFT;
        libtiff.TIFFGetField(state.tiff, TIFFTAG_IMAGEWIDTH, &head->width);
        libtiff.TIFFGetField(state.tiff, TIFFTAG_IMAGELENGTH, &head->height);
        libtiff.TIFFGetField(state.tiff, TIFFTAG_ORIENTATION, &orientation);
        head->orientation = orientation;
        for (int i = 1; i < most_directories && !head->has_pages && libtiff.TIFFReadDirectory(state.tiff); i++)
            head->has_pages = is_page(state.tiff);
    }
    close_picture(&state);
    return failure->code;
}

bool picture_library_tiff(void) { return true; }
#else
bool picture_library_tiff(void) { return false; }

static int missing(picture_failure *failure) {
    *failure = (picture_failure){PICTURE_MISSING, "compiled without the headers of libtiff 4.5 or newer"};
    return failure->code;
}

int picture_read_tiff(
    const picture_source *source, const picture_options *options, const picture_sink *sink, picture_failure *failure
) {
    (void)source, (void)options, (void)sink;
    return missing(failure);
}

int picture_measure_tiff(const picture_source *source, picture_tiff_head *head, picture_failure *failure) {
    (void)source, (void)head;
    return missing(failure);
}
#endif
