"""HTTP servers for tests: APIs that tests call, and endpoints for the services' deliveries."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Callable

Response = tuple[int, dict[str, str], bytes]
Handle = Callable[[BaseHTTPRequestHandler, bytes], Response]


@contextmanager
def run_server(handle: Handle) -> Iterator[str]:
    """Yields the address of a server that responds to each request with `handle`."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            status, headers, response_body = handle(self, body)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(response_body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(response_body)

        do_GET = do_POST

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
