// No C library: charsets that need one stay unknown.
