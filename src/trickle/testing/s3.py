"""A server of S3 in this process, for tests and measurements without a cloud."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final
from urllib.request import Request, urlopen

KEYS: Final = ("test-key", "test-secret")


@dataclass(frozen=True, slots=True)
class S3Server:
    """A server that runs.

    Attributes:
        endpoint: Its address.
    """

    endpoint: str

    @property
    def settings(self) -> dict[str, str]:
        """The settings of Spark by which S3A, and Trickle, find it."""
        own = {
            "endpoint": self.endpoint,
            "endpoint.region": "us-east-1",
            "access.key": KEYS[0],
            "secret.key": KEYS[1],
            "path.style.access": "true",
            "connection.ssl.enabled": "false",
        }
        return {f"spark.hadoop.fs.s3a.{key}": value for key, value in own.items()}

    @property
    def client_options(self) -> dict[str, str]:
        """The options by which delta-rs finds it."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": KEYS[0],
            "AWS_SECRET_ACCESS_KEY": KEYS[1],
            "AWS_REGION": "us-east-1",
            "AWS_ALLOW_HTTP": "true",
            "AWS_CONDITIONAL_PUT": "etag",
        }

    def make_bucket(self, name: str) -> None:
        """Make a bucket that is not there yet."""
        self.put(name, b"")

    def put(self, path: str, data: bytes) -> None:
        """Put any bytes under any name, given after its bucket; moto asks nobody who they are."""
        with urlopen(Request(f"{self.endpoint}/{path}", data, method="PUT")):
            return


@contextmanager
def s3_server(port: int = 0) -> Iterator[S3Server]:
    """Run moto's server on a port, any that is free if none is given."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=port, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield S3Server(f"http://{host}:{port}")
    finally:
        server.stop()
