// Takes HTTP/1.1 requests, reads their bodies, keeps nothing, and answers 201.
//
// Its first line says where it listens; after that comes one line a request with the number of bytes of its body, the
// framing of chunks not counted. It ends when its standard input does, so that it never outlives who started it.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { buffer_size = 256 << 10 };

struct connection {
    int socket;
    size_t begin, end;
    char bytes[buffer_size + 1];
};

// Reads more behind what is there; false where the client has closed or the buffer is full.
static bool fill(struct connection *connection) {
    if (connection->begin == connection->end) connection->begin = connection->end = 0;
    if (connection->end == buffer_size) {
        memmove(connection->bytes, connection->bytes + connection->begin, connection->end - connection->begin);
        connection->end -= connection->begin;
        connection->begin = 0;
    }
    if (connection->end == buffer_size) return false;
    ssize_t count = read(connection->socket, connection->bytes + connection->end, buffer_size - connection->end);
    if (count <= 0) return false;
    connection->end += (size_t)count;
    return true;
}

// Takes everything up to and with a mark, and ends it with a zero in the mark's place.
static char *take_through(struct connection *connection, const char *mark) {
    while (true) {
        connection->bytes[connection->end] = 0;
        char *begin = connection->bytes + connection->begin;
        char *found = strstr(begin, mark);
        if (found != NULL) {
            *found = 0;
            connection->begin = (size_t)(found - connection->bytes) + strlen(mark);
            return begin;
        }
        if (!fill(connection)) return NULL;
    }
}

static bool skip(struct connection *connection, uint64_t count) {
    while (count > 0) {
        if (connection->begin == connection->end && !fill(connection)) return false;
        size_t here = connection->end - connection->begin;
        if (here > count) here = (size_t)count;
        connection->begin += here;
        count -= here;
    }
    return true;
}

static bool skip_chunks(struct connection *connection, uint64_t *total) {
    while (true) {
        char *line = take_through(connection, "\r\n");
        if (line == NULL) return false;
        uint64_t size = strtoull(line, NULL, 16);
        if (!skip(connection, size) || take_through(connection, "\r\n") == NULL) return false;
        if (size == 0) return true;
        *total += size;
    }
}

static bool answer(int socket, const char *text) {
    size_t length = strlen(text);
    return write(socket, text, length) == (ssize_t)length;
}

// The value of a field in a head, or NULL.
static const char *field(char *head, const char *name) {
    size_t length = strlen(name);
    for (char *line = head; (line = strstr(line, "\r\n")) != NULL;) {
        line += 2;
        if (strncasecmp(line, name, length) == 0 && line[length] == ':') {
            return line + length + 1 + strspn(line + length + 1, " ");
        }
    }
    return NULL;
}

static bool serve_request(struct connection *connection) {
    char *head = take_through(connection, "\r\n\r\n");
    if (head == NULL) return false;
    const char *length = field(head, "Content-Length");
    const char *expectation = field(head, "Expect");
    uint64_t total = length == NULL ? 0 : strtoull(length, NULL, 10);
    bool is_chunked = length == NULL && field(head, "Transfer-Encoding") != NULL;
    if (expectation != NULL && !answer(connection->socket, "HTTP/1.1 100 Continue\r\n\r\n")) return false;
    if (is_chunked ? !skip_chunks(connection, &total) : !skip(connection, total)) return false;
    printf("%llu\n", (unsigned long long)total);
    return answer(connection->socket, "HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok");
}

static void *serve(void *argument) {
    struct connection *connection = argument;
    while (serve_request(connection)) {
    }
    close(connection->socket);
    free(connection);
    return NULL;
}

static void *accept_all(void *argument) {
    int listener = *(int *)argument;
    while (true) {
        int accepted = accept(listener, NULL, NULL);
        if (accepted < 0) continue;
        int yes = 1;
        setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        struct connection *connection = malloc(sizeof *connection);
        if (connection == NULL) exit(71);
        connection->socket = accepted;
        connection->begin = connection->end = 0;
        pthread_t thread;
        if (pthread_create(&thread, NULL, serve, connection) != 0) exit(71);
        pthread_detach(thread);
    }
}

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, size) != 0 || listen(listener, 128) != 0
        || getsockname(listener, (struct sockaddr *)&address, &size) != 0) {
        perror("sink");
        return 71;
    }
    printf("http://127.0.0.1:%d/\n", ntohs(address.sin_port));
    pthread_t thread;
    if (pthread_create(&thread, NULL, accept_all, &listener) != 0) return 71;
    char byte;
    while (read(STDIN_FILENO, &byte, 1) > 0) {
    }
    return 0;
}
