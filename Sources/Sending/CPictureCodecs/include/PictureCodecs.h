#ifndef PICTURE_CODECS_H
#define PICTURE_CODECS_H

// libjpeg-turbo, libpng, libwebp, libheif and libtiff behind one set of calls, row by row. Each is loaded when it is
// first used. libjpeg and libpng report errors with longjmp, which Swift cannot catch, so it ends here: every call
// returns a code, with a message.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Whether the libraries' headers were installed when this was compiled. Otherwise only this function may be called.
bool picture_libraries(void);
/// Whether those of libtiff were, without which all other formats work.
bool picture_library_tiff(void);

enum {
    PICTURE_OK = 0,
    /// A callback returned false.
    PICTURE_STOPPED = 1,
    /// The file is cut off or damaged.
    PICTURE_DAMAGED = 2,
    /// The file is of a kind that the library cannot read.
    PICTURE_UNSUPPORTED = 3,
    /// The picture needs more memory than allowed, or than there is.
    PICTURE_MEMORY = 4,
    /// The file cannot be opened.
    PICTURE_UNREADABLE = 5,
    /// This machine does not have the library.
    PICTURE_MISSING = 6,
};

typedef struct {
    int code;
    char message[256];
} picture_failure;

/// A file, or bytes in memory if there is no path.
typedef struct {
    const char *path;
    const uint8_t *bytes;
    size_t count;
} picture_source;

/// The rows that follow: 8 bits a channel, top to bottom, and nothing transparent.
typedef struct {
    uint32_t width, height;
    /// 1 for grey, 3 for RGB.
    uint32_t channels;
    /// The ICC profile; valid during the call. NULL if there is none.
    const uint8_t *profile;
    size_t profile_count;
} picture_rows;

/// Receives rows. Each function returns false to stop.
typedef struct {
    void *context;
    bool (*start)(void *context, const picture_rows *rows);
    bool (*row)(void *context, const uint8_t *row);
    /// Called now and then, while no row is ready.
    bool (*proceed)(void *context);
} picture_sink;

/// What a decoder may do.
typedef struct {
    /// The decoder may shrink the picture by a half, a quarter or an eighth, if its longer edge keeps this many pixels.
    uint32_t smallest_edge;
    /// The maximum number of bytes that a picture held as a whole may need, such as a progressive JPEG.
    size_t memory;
} picture_options;

int picture_read_jpeg(const picture_source *, const picture_options *, const picture_sink *, picture_failure *);
int picture_read_png(const picture_source *, const picture_options *, const picture_sink *, picture_failure *);
int picture_read_webp(const picture_source *, const picture_options *, const picture_sink *, picture_failure *);
int picture_read_heif(const picture_source *, const picture_options *, const picture_sink *, picture_failure *);
/// Reads the first page, as it is stored.
int picture_read_tiff(const picture_source *, const picture_options *, const picture_sink *, picture_failure *);

/// The size of an HEIF picture as it is shown, after its own rotation.
int picture_measure_heif(const picture_source *, uint32_t *width, uint32_t *height, picture_failure *);

typedef struct {
    /// Of the first page, as it is stored.
    uint32_t width, height;
    /// How the pixels have to be turned, as EXIF numbers it.
    uint32_t orientation;
    /// Whether there are more pages than the first.
    bool has_pages;
} picture_tiff_head;

int picture_measure_tiff(const picture_source *, picture_tiff_head *, picture_failure *);

/// Encodes a baseline or progressive JPEG with 4:2:0 chroma.
///
/// On success the bytes belong to the caller, who frees them with picture_free.
int picture_write_jpeg(
    const uint8_t *pixels, const picture_rows *rows, int quality, bool progressive, const picture_sink *,
    uint8_t **bytes, size_t *count, picture_failure *);
void picture_free(uint8_t *bytes);

#endif
