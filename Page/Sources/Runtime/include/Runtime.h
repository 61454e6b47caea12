// What Embedded Swift needs of a C library.
#pragma once
#include <stddef.h>
#include <stdint.h>

/// The next bytes of a fixed request, for the page.
__attribute__((import_module("page"), import_name("write"))) void page_write(const void *bytes, size_t count);
__attribute__((import_module("page"), import_name("secondsNow"))) double page_seconds_now(void);
__attribute__((import_module("page"), import_name("number"))) double page_number(const void *text, size_t count);
