"""A proxy before a server of S3 that counts requests, makes them slow, and answers badly when it is told to."""

from __future__ import annotations

import http.client
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Literal
from urllib.parse import urlsplit

from trickle.testing.passing import PassingHandler, QuietServer

Fault = Literal["unavailable", "cut body", "lost answer", "refused", "skewed"]
"""503 without doing it; half of the answer; a request that is carried out and not answered; 403 without doing it, also for
the time of a clock that is wrong."""

_TIMEOUT = 60


@dataclass(slots=True)
class Request:
    """What a client asks for."""

    method: str
    path: str
    client: str
    key: str = ""
    """The access key that signed it."""


@dataclass
class Proxy:
    """A proxy that runs.

    Attributes:
        endpoint: Its address.
        seconds: By how much it makes each request slower.
        fault: What tells how a request goes wrong, None if it does not.
        hidden: Headers of requests that the server behind does not get to see.
        requests: What was asked for since the last ``clear``.
    """

    endpoint: str = ""
    seconds: float = 0.0
    fault: Callable[[Request], Fault | None] = lambda _: None
    hidden: frozenset[str] = frozenset()
    requests: list[Request] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def clear(self) -> None:
        """Forget the requests."""
        with self._lock:
            self.requests = []

    def count(self, client: str = "") -> Counter[str]:
        """Count the requests of clients whose names hold a text, by their methods."""
        with self._lock:
            return Counter(request.method for request in self.requests if client in request.client)

    def note(self, request: Request) -> None:
        """Take down a request."""
        with self._lock:
            self.requests.append(request)


@contextmanager
def s3_proxy(endpoint: str) -> Iterator[Proxy]:
    """Run a proxy before a server."""
    proxy = Proxy()
    server = _Server(("127.0.0.1", 0), _Handler)
    server.proxy, server.behind = proxy, urlsplit(endpoint).netloc
    proxy.endpoint = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(QuietServer):
    proxy: Proxy
    behind: str


class _Handler(PassingHandler):
    server: _Server
    _connection: http.client.HTTPConnection | None = None

    def setup(self) -> None:
        super().setup()
        self.request.setsockopt(6, 1, True)  # TCP_NODELAY: head and body of an answer are two writes

    def finish(self) -> None:
        if self._connection is not None:
            self._connection.close()
        super().finish()

    def _pass_on(self) -> None:
        proxy, body = self.server.proxy, self.body()
        signed = self.headers.get("Authorization", "").partition("Credential=")[2].partition("/")[0]
        asked = Request(self.command, self.path, self.headers.get("User-Agent", ""), signed)
        proxy.note(asked)
        if proxy.seconds:
            time.sleep(proxy.seconds)
        fault = proxy.fault(asked)
        if fault in _ANSWERS:
            status, code = _ANSWERS[fault]
            self.give(status, [], b"<Error><Code>%s</Code></Error>" % code)
            return
        status, headers, data = self._asked_behind(body)
        if fault == "lost answer":
            self.close_connection = True
            return
        self.give(status, headers, data, cut=fault == "cut body")

    def _asked_behind(self, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        for is_last in (False, True):
            if self._connection is None:
                self._connection = http.client.HTTPConnection(self.server.behind, timeout=_TIMEOUT)
            try:
                hidden = {"transfer-encoding", "expect", *self.server.proxy.hidden}
                headers = {key: value for key, value in self.headers.items() if key.lower() not in hidden}
                self._connection.request(self.command, self.path, body=body or None, headers=headers)
                answer = self._connection.getresponse()
                return answer.status, answer.getheaders(), answer.read()
            except (http.client.HTTPException, OSError):
                self._connection.close()
                self._connection = None
                if is_last:
                    raise
        raise AssertionError

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on  # noqa: N815 - so the standard library calls them


_ANSWERS = {
    "unavailable": (503, b"SlowDown"),
    "refused": (403, b"AccessDenied"),
    "skewed": (403, b"RequestTimeTooSkewed"),
}
