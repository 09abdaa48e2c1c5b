#!/usr/bin/env python3
"""A receiver of job-run events that needs only Python's standard library (3.8 or newer).

    HMAC_SECRET=whsec_... PORT=3003 python3 examples/receivers/python/receiver.py

It requires a subscription whose client_url is http://127.0.0.1:3003/webhooks. HMAC_SECRET is the hmac_secret in the
response to the creation of the subscription. Prints each delivery as a line of JSON.
"""

import hashlib
import hmac
import json
import os
import signal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# The webhook's signature header, and the path of its client_url.
SIGNATURE_HEADER = "authorization"
PATH = "/webhooks"
BODY_BYTES_MAX = 1_000_000


def is_genuine(body: bytes, signature: str, secret: str) -> bool:
    """Whether the header is the lowercase hex HMAC-SHA256 of the exact body, compared in constant time."""
    expected = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace"))


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60

    def do_POST(self):
        length = self.headers.get("Content-Length", "")
        if self.path.split("?")[0] != PATH or not length.isdigit() or int(length) > BODY_BYTES_MAX:
            self.close_connection = True
            return self.respond(404 if self.path.split("?")[0] != PATH else 413)
        body = self.rfile.read(int(length))
        verified = is_genuine(body, self.headers.get(SIGNATURE_HEADER, ""), SECRET)
        # The body must not be used before it is verified.
        event = json.loads(body) if verified else {}
        status = 204 if verified else 401
        # Respond first and process the event afterwards: an attempt without a response fails after ten seconds.
        self.respond(status)
        print_line(
            verified=verified,
            status=status,
            # Every attempt has the same id: drop events that were processed before, because delivery is at least once.
            eventId=event.get("eventId"),
            eventType=event.get("eventType"),
            runId=event.get("data", {}).get("runId"),
            runStatus=event.get("data", {}).get("runStatus"),
        )

    def respond(self, status: int):
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        """Suppresses the default log, because print_line prints each request."""


def print_line(**fields):
    print(json.dumps(fields), flush=True)


def stop(*_):
    raise SystemExit(0)


if __name__ == "__main__":
    SECRET = os.environ["HMAC_SECRET"]
    HOST = os.environ.get("HOST", "127.0.0.1")
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    with ThreadingHTTPServer((HOST, int(os.environ.get("PORT", "3003"))), Receiver) as server:
        server.daemon_threads = True
        print_line(listening=f"http://{HOST}:{server.server_address[1]}{PATH}")
        server.serve_forever()
