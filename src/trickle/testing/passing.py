"""What proxies of tests have in common: a server that says nothing, and requests that are passed on and answered."""

from __future__ import annotations

from collections.abc import Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

_OF_THE_WAY = ("connection", "transfer-encoding", "content-length")
"""Headers that tell of one connection, not of what is answered."""


class QuietServer(ThreadingHTTPServer):
    """A server that clients may leave at any time."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: clients go away."""


class PassingHandler(BaseHTTPRequestHandler):
    """Reads whole requests, and answers with what another server answered."""

    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def body(self) -> bytes:
        """Read the body of the request."""
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(parts)

    def give(self, status: int, headers: Sequence[tuple[str, str]], data: bytes, *, cut: bool = False) -> None:
        """Answer; ``cut`` ends the connection amid the body."""
        self.send_response_only(status)
        for key, value in headers:
            if key.lower() not in _OF_THE_WAY:
                self.send_header(key, value)
        told = dict(headers).get("Content-Length", str(len(data)))
        self.send_header("Content-Length", told if self.command == "HEAD" else str(len(data)))
        self.end_headers()
        if cut and data:
            self.wfile.write(data[: len(data) // 2])
            self.close_connection = True
        elif self.command != "HEAD":
            self.wfile.write(data)
