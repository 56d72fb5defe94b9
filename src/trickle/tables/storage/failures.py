"""What an object store's refusals mean, in errors of ours; a client's own text is not shown, for it may hold what is secret."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from obstore.exceptions import AlreadyExistsError, PermissionDeniedError, PreconditionError, UnauthenticatedError

from trickle.errors import StorageError

_CODE: Final = re.compile(r"<Code>(\w+)</Code>")
_STATUS: Final = re.compile(r"status code: (\d{3})")
_BUCKET_GONE: Final = ("NoSuchBucket", "ContainerNotFound", "FilesystemNotFound")
_REFUSED: Final = ("401", "403")
_TAKEN: Final = ("409", "412")
_CLOCK: Final = ("RequestTimeTooSkewed", "RequestExpired")
_SURE: Final = 400
_NOT_SURE: Final = 500


def no_conditions(address: str) -> StorageError:
    """Return the error of a server that writes what it is asked to write only if it is absent, whether it is or not."""
    return StorageError(
        "NO_CONDITIONAL_PUT",
        f"The server of {_bucket(address)} overwrites files that it is asked to write only if they are absent.",
        hint="Commits would be lost there. Use a newer version of it, or Trickle(spark, disable={'driver_io'}).",
    )


def unusable_settings(root: str, names: Iterable[str]) -> StorageError:
    """Return the error of settings that no client can be made with: a file that is not there, an address that is none."""
    return StorageError(
        "STORAGE_SETTINGS",
        f"No client of {root} can be made with its settings of {', '.join(sorted(names))}.",
        hint="Check the endpoint, the proxy and the key file among Spark's Hadoop settings.",
    )


def storage_error(error: BaseException, address: str, *, puts: bool = False) -> StorageError | None:
    """Return the error to raise for one of a client's; None for one of a file that is not there.

    A request that ``puts`` a file finds only the bucket missing.
    """
    bucket = _bucket(address)
    text = str(error)
    said, status = _CODE.search(text), _STATUS.search(text)
    code = said[1] if said else ""
    if code in _BUCKET_GONE or (puts and isinstance(error, FileNotFoundError)):
        return StorageError("STORAGE_MISSING", f"There is no bucket {bucket}.", hint="Create it, or check the name.")
    if isinstance(error, FileNotFoundError):
        return None
    why = code or (f"HTTP {status[1]}" if status else "")
    if code in _CLOCK:
        return StorageError(
            "STORAGE_REFUSED",
            f"{bucket} refuses requests of this machine's time ({why}).",
            hint="Set the clock of this machine.",
        )
    if isinstance(error, PermissionDeniedError | UnauthenticatedError | PermissionError) or (
        status and status[1] in _REFUSED
    ):
        return StorageError(
            "STORAGE_REFUSED",
            f"{bucket} refuses access to {address}" + (f" ({why})." if why else "."),
            hint="Check the credentials, and whether they may read, write, list and delete there.",
        )
    return StorageError(
        "STORAGE_FAILED",
        f"{bucket} did not answer for {address}" + (f" ({why})." if why else "."),
        hint="It was tried several times. Check the endpoint and the network, then refresh again.",
    )


def _bucket(address: str) -> str:
    return "/".join(address.split("/")[:3])


def is_refused_condition(error: BaseException) -> bool:
    """Return whether a file was not written because there is one, or because somebody is writing it."""
    status = _STATUS.search(str(error))
    return isinstance(error, AlreadyExistsError | PreconditionError) or (status is not None and status[1] in _TAKEN)


def is_uncertain(error: BaseException) -> bool:
    """Return whether a request that failed so may have done its work all the same: nobody said that it did not."""
    if isinstance(error, FileNotFoundError | PermissionDeniedError | UnauthenticatedError):
        return False
    status = _STATUS.search(str(error))
    return status is None or not _SURE <= int(status[1]) < _NOT_SURE
