#ifndef CURL_LOADER_H
#define CURL_LOADER_H

#include <stdbool.h>

/// Whether URLSession can be used: whether this machine has libcurl, which is loaded now if it was not yet.
///
/// URLSession on Linux is made of libcurl, which loads thirty other libraries. A program that is linked with this module
/// starts without them. URLSession must not be used if this returns false.
bool curl_loader_load(void);

#endif
