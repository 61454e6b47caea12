"""The endpoint of a webhook: webhook.py PORT SECRET FILE [STATUS]

Verifies each message with the library of Standard Webhooks, and appends a line to FILE before it responds: the record's
identifier, or what is wrong. Responds with STATUS if it is given, and a redirect that leads to the same messages. With
port 0 it takes any free one. Prints the address when it is ready.
"""

import http.server
import os
import sys

import standardwebhooks

port, secret, path = int(sys.argv[1]), sys.argv[2], sys.argv[3]
status_of_all = int(sys.argv[4]) if len(sys.argv) > 4 else None
webhook = standardwebhooks.Webhook(secret)
file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)


class Endpoint(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        length = int(self.headers["content-length"])
        body = self.rfile.read(length)
        if len(body) < length:
            # The sender was killed.
            self.close_connection = True
            return
        try:
            message = webhook.verify(body, dict(self.headers))
            if self.headers["webhook-id"] != "msg_" + message["data"]["id"]:
                raise ValueError("The message has another identifier.")
            line, status = message["data"]["id"], 204
        except Exception as error:  # pylint: disable=broad-except
            line, status = f"refused: {error!r}", 400
        os.write(file, (line + "\n").encode())
        self.send_response(status_of_all or status)
        self.send_header("location", "/elsewhere")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Endpoint)
print(f"listening on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
