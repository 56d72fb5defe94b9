"""The client of an object store, by obstore: its requests are tried again, and its errors become ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeVar

from obstore.exceptions import BaseError
from obstore.store import AzureStore, GCSStore, S3Store

from trickle.tables.storage.failures import is_uncertain, storage_error, unusable_settings

if TYPE_CHECKING:
    from trickle.tables.storage.credentials import ClientSettings

TRIES: Final = 3
"""How often a read is tried whose body breaks off; refusals to answer are retried by the client."""

RETRY: Final = {"max_retries": 8, "retry_timeout": timedelta(seconds=20)}
PATIENCE: Final = 45.0
"""Seconds after which nothing is tried again: with the client's own tries all end after about a minute."""

_MARGIN: Final = timedelta(seconds=60)
_OPTIONS: Final = {
    "access_key_id": "access_key_id",
    "secret_access_key": "secret_access_key",
    "token": "session_token",
    "access_key": "account_key",
    "sas_token": "sas_token",
}
"""What polars calls the parts of credentials."""

_KINDS: Final = {"s3": S3Store, "azure": AzureStore, "gcs": GCSStore}

R = TypeVar("R")


class Client:
    """The client of a bucket, or a container, under the URI that its addresses begin with."""

    def __init__(self, kind: str, root: str, settings: ClientSettings) -> None:
        """Ask nothing yet; the kind is ``s3``, ``azure`` or ``gcs``.

        Raises:
            StorageError: ``STORAGE_SETTINGS``.
        """
        self.root, self.settings = root, settings
        self._credential: _Credential | None = None
        config = {"bucket": root.partition("://")[2], **settings.config} if kind == "s3" else settings.config
        provider = {} if settings.provider is None else {"credential_provider": self._renewed}
        try:
            self.store: Any = _KINDS[kind](
                config=config, client_options=settings.client or None, retry_config=RETRY, **provider
            )
        except (BaseError, ValueError):
            raise unusable_settings(root, (*config, *settings.client)) from None

    def _renewed(self) -> Mapping[str, Any]:
        """Return credentials that last for a while."""
        held = self._credential
        if held is None or not held.is_good:
            found = self.settings.provider() if self.settings.provider is not None else None
            if found is not None:
                held = self._credential = _Credential(found)
            if held is None:
                message = "there are no credentials any more"
                raise PermissionError(message)
        return held.values

    def options(self) -> dict[str, str]:
        """Return what polars needs to read there."""
        options = {**self.settings.config, **self.settings.client}
        if self.settings.provider is not None:
            held = self._renewed()
            options |= {option: held[name] for name, option in _OPTIONS.items() if held.get(name)}
        return {key: str(value).lower() if isinstance(value, bool) else str(value) for key, value in options.items()}

    def path(self, address: str) -> str:
        """Return what the store calls an address."""
        return address[len(self.root) + 1 :]

    @contextmanager
    def named(self, address: str, *, puts: bool = False) -> Iterator[None]:
        """Turn the client's errors into ours."""
        try:
            yield
        except FileNotFoundError as error:
            if (other := storage_error(error, address, puts=puts)) is not None:
                raise other from None
            raise FileNotFoundError(address) from None
        except ValueError as error:
            if "parse path" not in str(error):
                raise
            raise FileNotFoundError(address) from error  # a name that no file can have
        except BaseError as error:
            # The client's own text may have the whole request in it.
            raise storage_error(error, address) or OSError(type(error).__name__) from None

    def tried(self, address: str, read: Callable[[], R]) -> R:
        """Read again what broke off."""
        until = monotonic() + PATIENCE
        with self.named(address):
            for _ in range(TRIES - 1):
                try:
                    return read()
                except BaseError as error:
                    if not is_uncertain(error) or monotonic() > until:
                        raise
            return read()


@dataclass(frozen=True, slots=True)
class _Credential:
    """Credentials, which no text shows."""

    values: Mapping[str, Any] = field(repr=False)

    @property
    def is_good(self) -> bool:
        ends = self.values["expires_at"]
        return ends is None or ends - _MARGIN > datetime.now(UTC)
