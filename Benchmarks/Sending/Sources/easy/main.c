// Posts the same small form again and again with libcurl's easy interface, one handle for all: easy URL FILE COUNT
//
// It prints the seconds that this took.

#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static size_t discard(char *bytes, size_t size, size_t count, void *context) {
    (void)bytes;
    (void)context;
    return size * count;
}

static void add_text(curl_mime *form, const char *name, const char *value) {
    curl_mimepart *part = curl_mime_addpart(form);
    curl_mime_name(part, name);
    curl_mime_data(part, value, CURL_ZERO_TERMINATED);
}

static CURLcode post(CURL *handle, const char *file) {
    curl_mime *form = curl_mime_init(handle);
    add_text(form, "name", "초코");
    add_text(form, "kind", "dog");
    add_text(form, "message", "안녕하세요, 제주에서");
    curl_mimepart *part = curl_mime_addpart(form);
    curl_mime_name(part, "picture");
    curl_mime_filedata(part, file);
    curl_mime_type(part, "image/jpeg");
    curl_easy_setopt(handle, CURLOPT_MIMEPOST, form);
    CURLcode result = curl_easy_perform(handle);
    curl_mime_free(form);
    return result;
}

int main(int count, char **arguments) {
    if (count != 4) return 64;
    CURL *handle = curl_easy_init();
    if (handle == NULL) return 71;
    curl_easy_setopt(handle, CURLOPT_URL, arguments[1]);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, discard);
    curl_easy_setopt(handle, CURLOPT_FAILONERROR, 1L);
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    for (long left = strtol(arguments[3], NULL, 10); left > 0; left--) {
        CURLcode result = post(handle, arguments[2]);
        if (result != CURLE_OK) {
            fprintf(stderr, "%s\n", curl_easy_strerror(result));
            return 69;
        }
    }
    clock_gettime(CLOCK_MONOTONIC, &end);
    curl_easy_cleanup(handle);
    printf("%.6f\n", (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9);
    return 0;
}
