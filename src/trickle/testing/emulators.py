"""Emulators of Azure Blob Storage and of Google Cloud Storage, for tests: Azurite from npm, fake-gcs-server built by Go.

They are installed into the user's cache once, and by Maven the connector that Spark needs for Google. fake-gcs-server knows
Google's JSON API, which that connector speaks, and of the XML API, which the driver's client speaks, only the reading half: a
proxy translates the writes.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.client
import json
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from email.utils import formatdate
from pathlib import Path
from threading import Thread
from typing import Final, TypeVar
from urllib.error import HTTPError
from urllib.parse import quote, unquote
from urllib.request import Request, urlopen

from trickle.jars import Package, find_jars, hadoop_version
from trickle.testing.passing import PassingHandler, QuietServer

_AZURITE: Final = "3.35.0"
_FAKE_GCS: Final = "v1.56.1"
_START_SECONDS: Final = 60.0
_INSTALL_SECONDS: Final = 600.0
_CONNECTOR: Final = "4.0.0"
_ACCOUNT: Final = "devstoreaccount1"
_KEY: Final = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The key of the one account of Azurite, which its documentation prints."""

_HADOOP: Final = "spark.hadoop."

T = TypeVar("T")


class UnavailableError(Exception):
    """An emulator cannot be installed here; the text says what is missing."""


@dataclass(frozen=True, slots=True)
class AzureServer:
    """Azurite.

    Attributes:
        address: Host and port.
    """

    address: str

    @property
    def settings(self) -> dict[str, str]:
        """The settings of Spark by which Hadoop's client, and Trickle, find it."""
        own = {
            f"account.key.{_ACCOUNT}.dfs.core.windows.net": _KEY,
            "abfs.endpoint": self.address,
            "always.use.https": "false",
            "account.hns.enabled": "false",
            "fns.account.service.type": "BLOB",
        }
        return {f"{_HADOOP}fs.azure.{key}": value for key, value in own.items()}

    def root(self, container: str) -> str:
        """Return the URI of a container."""
        return f"abfs://{container}@{_ACCOUNT}.dfs.core.windows.net"

    def make_container(self, name: str) -> None:
        """Make a container that is not there yet."""
        own = f"x-ms-date:{formatdate(usegmt=True)}\nx-ms-version:2021-08-06"
        signed = f"PUT{chr(10) * 12}{own}\n/{_ACCOUNT}/{_ACCOUNT}/{name}\nrestype:container"
        digest = hmac.new(base64.b64decode(_KEY), signed.encode(), hashlib.sha256).digest()
        headers = dict(line.split(":", 1) for line in own.split("\n"))
        headers["Authorization"] = f"SharedKey {_ACCOUNT}:{base64.b64encode(digest).decode()}"
        url = f"http://{self.address}/{_ACCOUNT}/{name}?restype=container"
        with urlopen(Request(url, headers=headers, method="PUT")):
            return


@dataclass(frozen=True, slots=True)
class GcsServer:
    """fake-gcs-server, behind its proxy.

    Attributes:
        address: Host and port.
    """

    address: str

    @property
    def settings(self) -> dict[str, str]:
        """The settings of Spark by which Google's connector, and Trickle, find it."""
        own = {
            "fs.gs.impl": "com.google.cloud.hadoop.fs.gcs.GoogleHadoopFileSystem",
            "fs.gs.project.id": "test",
            "fs.gs.storage.root.url": f"http://{self.address}/",
            "fs.gs.auth.type": "UNAUTHENTICATED",
        }
        return {_HADOOP + key: value for key, value in own.items()}

    def make_bucket(self, name: str) -> None:
        """Make a bucket that is not there yet."""
        headers = {"Content-Type": "application/json"}
        url = f"http://{self.address}/storage/v1/b?project=test"
        with urlopen(Request(url, json.dumps({"name": name}).encode(), headers, method="POST")):
            return


@contextmanager
def emulator(starting: AbstractContextManager[T]) -> Iterator[T]:
    """Run an emulator for a test; skip the test, and say why, where it cannot be installed."""
    import pytest

    with ExitStack() as stack:
        try:
            running = stack.enter_context(starting)
        except UnavailableError as error:
            pytest.skip(str(error))
        yield running


@contextmanager
def azurite(port: int = 0) -> Iterator[AzureServer]:
    """Run Azurite on a port, any that is free if none is given.

    Raises:
        UnavailableError: It is not here, and npm cannot install it.
    """
    package = f"azurite@{_AZURITE}"
    home = _installed(package, "npm", lambda folder: ["npm", "install", "--prefix", str(folder), package])
    port = port or _free_port()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [
            str(home / "node_modules/.bin/azurite-blob"),
            "--silent",
            "--skipApiVersionCheck",
            "--inMemoryPersistence",
        ]
        command += ["--disableTelemetry", "--blobHost", "127.0.0.1", "--blobPort", str(port)]
        with _running(command, port, folder):
            yield AzureServer(f"127.0.0.1:{port}")


@contextmanager
def fake_gcs(port: int = 0) -> Iterator[GcsServer]:
    """Run fake-gcs-server behind its proxy on a port, any that is free if none is given.

    Raises:
        UnavailableError: It is not here, and Go cannot build it.
    """
    package = f"github.com/fsouza/fake-gcs-server@{_FAKE_GCS}"
    home = _installed(package, "go", lambda _: ["go", "install", package])
    behind = _free_port()
    server = _Proxy(("127.0.0.1", port), _Translated)
    address = f"127.0.0.1:{server.server_address[1]}"
    server.behind = f"127.0.0.1:{behind}"
    command = [str(home / "fake-gcs-server"), "-scheme", "http", "-host", "127.0.0.1", "-port", str(behind)]
    command += ["-backend", "memory", "-public-host", address, "-log-level", "error"]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder, _running(command, behind, folder):
        thread.start()
        try:
            yield GcsServer(address)
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


def azure_jars() -> tuple[Path, ...]:
    """Return Hadoop's client of Azure that fits the installed ``pyspark``."""
    version = hadoop_version()
    return find_jars(Package(f"jars-azure-{version}", (f"org.apache.hadoop:hadoop-azure:{version}",)))


def google_jars() -> tuple[Path, ...]:
    """Return Google's connector for Hadoop: the shaded jar, 38 MB, which Ivy cannot name.

    Raises:
        UnavailableError: It is not here, and Maven cannot fetch it.
    """
    artifact = f"com.google.cloud.bigdataoss:gcs-connector:{_CONNECTOR}:jar:shaded"
    copied = ["mvn", "-q", "-B", "dependency:copy", f"-Dartifact={artifact}"]
    home = _installed(f"gcs-connector@{_CONNECTOR}", "mvn", lambda folder: [*copied, f"-DoutputDirectory={folder}"])
    return (home / f"gcs-connector-{_CONNECTOR}-shaded.jar",)


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "spark-trickle" / "emulators"


def _installed(package: str, tool: str, command: Callable[[Path], Sequence[str]]) -> Path:
    """Return the folder of a package in the user's cache; a tool installs it beside, then it is moved there in one step."""
    cache = _cache()
    home = cache / package.rpartition("/")[2]
    if home.is_dir():
        return home
    if shutil.which(tool) is None:
        message = f"{package} is not here, and there is no {tool} to install it"
        raise UnavailableError(message)
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as made:
        folder = Path(made, "package")
        folder.mkdir()
        try:
            done = subprocess.run(
                command(folder),
                env={**os.environ, "GOBIN": str(folder)},
                capture_output=True,
                text=True,
                timeout=_INSTALL_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            message = f"{tool} did not install {package} in {_INSTALL_SECONDS:.0f} s"
            raise UnavailableError(message) from error
        if done.returncode:
            message = f"{tool} cannot install {package}: {done.stderr.strip()[-500:]}"
            raise UnavailableError(message)
        if not home.is_dir():  # another process may have been faster
            folder.rename(home)
    return home


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


@contextmanager
def _running(command: Sequence[str], port: int, folder: str) -> Iterator[None]:
    log = Path(folder, "log")
    with log.open("wb") as said:
        server = subprocess.Popen(command, cwd=folder, stdout=said, stderr=subprocess.STDOUT)
    try:
        until = time.monotonic() + _START_SECONDS
        while not _answers(port):
            if server.poll() is not None or time.monotonic() > until:
                raise RuntimeError(log.read_text(errors="replace")[-2000:])
            time.sleep(0.1)
        yield
    finally:
        server.kill()
        server.wait()


def _answers(port: int) -> bool:
    try:
        urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
    except HTTPError:
        return True
    except OSError:
        return False
    return True


class _Proxy(QuietServer):
    behind = ""


class _Translated(PassingHandler):
    """Passes everything on, and PUT of the XML API as an upload of the JSON API."""

    server: _Proxy

    def _pass_on(self) -> None:
        method, path, headers = self.command, self.path, dict(self.headers.items())
        body = self.body()
        is_written = method == "PUT" and not path.startswith(("/storage/v1/", "/upload/"))
        if is_written:
            bucket, _, name = path.lstrip("/").partition("/")
            method = "POST"
            path = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={quote(unquote(name), safe='')}"
            if (generation := self.headers.get("x-goog-if-generation-match")) is not None:
                path += f"&ifGenerationMatch={generation}"
        connection = http.client.HTTPConnection(self.server.behind, timeout=60)
        try:
            dropped = ("transfer-encoding", "expect", "connection", "content-length")
            kept = {key: text for key, text in headers.items() if key.lower() not in dropped}
            if body or method in ("POST", "PUT", "PATCH"):
                kept["Content-Length"] = str(len(body))
            connection.request(method, path, body=body, headers=kept)
            answer = connection.getresponse()
            status, said, data = answer.status, answer.getheaders(), answer.read()
        finally:
            connection.close()
        if is_written and status < 300:
            said, data = [("ETag", json.loads(data)["etag"])], b""
        self.give(status, said, data)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = do_PATCH = _pass_on  # noqa: N815 - so the standard library calls them
