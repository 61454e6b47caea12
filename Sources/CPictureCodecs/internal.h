#ifndef PICTURE_INTERNAL_H
#define PICTURE_INTERNAL_H

#include <stdio.h>

#include "PictureCodecs.h"

/// Opens a source for reading; NULL if it cannot be opened, with the failure filled in.
FILE *picture_open(const picture_source *, picture_failure *);
int picture_fail(picture_failure *, int code, const char *message);
/// Lays a row of grey and alpha, or of RGBA, over white; in place.
void picture_over_white(uint8_t *row, uint32_t width, uint32_t color_channels);

#endif
