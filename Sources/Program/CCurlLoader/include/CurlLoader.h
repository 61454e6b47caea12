#ifndef CURL_LOADER_H
#define CURL_LOADER_H

#include <stdbool.h>

/// Loads libcurl if it is not loaded yet. Returns whether this machine has libcurl, which URLSession needs.
///
/// URLSession on Linux uses libcurl, which loads thirty other libraries. A program that is linked with this module
/// starts without loading any of them. URLSession must not be used if this function returns false.
bool curl_loader_load(void);

#endif
