// Writes a HEIC picture that its own boxes turn: turned_heif ORIENTATION QUALITY FILE.ppm FILE.heic
//
// heif-enc cannot write the boxes irot and imir, so generate.py compiles this: cc turned_heif.c -lheif
#include <libheif/heif.h>
#include <stdio.h>
#include <stdlib.h>

static void check(struct heif_error error) {
    if (error.code == heif_error_Ok) return;
    fprintf(stderr, "turned_heif: %s\n", error.message);
    exit(1);
}

int main(int count, char **arguments) {
    int width, height;
    FILE *file = count == 5 ? fopen(arguments[3], "rb") : NULL;
    if (!file || fscanf(file, "P6 %d %d 255", &width, &height) != 2) return 1;
    fgetc(file);

    struct heif_image *image;
    int stride;
    check(heif_image_create(width, height, heif_colorspace_RGB, heif_chroma_interleaved_RGB, &image));
    check(heif_image_add_plane(image, heif_channel_interleaved, width, height, 24));
    uint8_t *plane = heif_image_get_plane(image, heif_channel_interleaved, &stride);
    for (int y = 0; y < height; y++)
        if (fread(plane + (size_t)y * stride, 3, width, file) != (size_t)width) return 1;
    fclose(file);

    struct heif_context *context = heif_context_alloc();
    struct heif_encoder *encoder;
    check(heif_context_get_encoder_for_format(context, heif_compression_HEVC, &encoder));
    heif_encoder_set_lossy_quality(encoder, atoi(arguments[2]));
    heif_encoder_set_parameter_string(encoder, "preset", "ultrafast");
    struct heif_encoding_options *options = heif_encoding_options_alloc();
    options->image_orientation = (enum heif_orientation)atoi(arguments[1]);
    struct heif_image_handle *handle;
    check(heif_context_encode_image(context, image, encoder, options, &handle));
    check(heif_context_write_to_file(context, arguments[4]));
    return 0;
}
