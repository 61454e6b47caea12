#ifndef PICTURE_CODECS_H
#define PICTURE_CODECS_H

// libjpeg-turbo, libpng, libwebp, libheif and libtiff behind one interface, row by row. Each library is loaded at its
// first use. Every function returns a code and a message: Swift cannot catch the longjmp of libjpeg and libpng.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/// Whether this module was compiled with the libraries' headers. If not, only this function may be called.
bool picture_libraries(void);
/// Whether this module was compiled with the headers of libtiff. The other formats work without them.
bool picture_library_tiff(void);

enum {
    PICTURE_OK = 0,
    /// A callback returned false.
    PICTURE_STOPPED = 1,
    /// The file is cut off or damaged.
    PICTURE_DAMAGED = 2,
    /// The library cannot read files of this kind.
    PICTURE_UNSUPPORTED = 3,
    /// The picture needs more memory than is allowed or available.
    PICTURE_MEMORY = 4,
    /// The file cannot be opened.
    PICTURE_UNREADABLE = 5,
    /// The library is not installed on this machine.
    PICTURE_MISSING = 6,
};

typedef struct {
    int code;
    char message[256];
} picture_failure;

/// A picture file, or the bytes of a picture in memory if `path` is NULL.
typedef struct {
    const char *path;
    const uint8_t *bytes;
    size_t count;
} picture_source;

/// The format of a picture's rows: 8 bits per channel, top to bottom, opaque.
typedef struct {
    uint32_t width, height;
    /// 1 for grey, 3 for RGB.
    uint32_t channels;
    /// The ICC profile, valid during the call; NULL if the picture has none.
    const uint8_t *profile;
    size_t profile_count;
} picture_rows;

/// Callbacks that receive the rows of a picture. Each callback returns false to stop.
typedef struct {
    void *context;
    bool (*start)(void *context, const picture_rows *rows);
    bool (*row)(void *context, const uint8_t *row);
    /// Called from time to time while no row is ready.
    bool (*proceed)(void *context);
} picture_sink;

/// The limits of a decoder.
typedef struct {
    /// The decoder may shrink the picture to a half, a quarter or an eighth if its longer edge keeps this many pixels.
    uint32_t smallest_edge;
    /// The maximum memory in bytes for a picture that is decoded as a whole, such as a progressive JPEG.
    size_t memory;
} picture_options;

int picture_read_jpeg(const picture_source *, const picture_options *, const picture_sink *, picture_failure *);
int picture_read_png(const picture_source *, const picture_options *, const picture_sink *, picture_failure *);
int picture_read_webp(const picture_source *, const picture_options *, const picture_sink *, picture_failure *);
int picture_read_heif(const picture_source *, const picture_options *, const picture_sink *, picture_failure *);
/// Reads the first page of a TIFF file, without applying its orientation.
int picture_read_tiff(const picture_source *, const picture_options *, const picture_sink *, picture_failure *);

/// Measures an HEIF picture after its own rotation.
int picture_measure_heif(const picture_source *, uint32_t *width, uint32_t *height, picture_failure *);

typedef struct {
    /// The size of the first page, before its orientation is applied.
    uint32_t width, height;
    /// The orientation of the first page, as an EXIF number.
    uint32_t orientation;
    /// Whether the file has more than one page.
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
