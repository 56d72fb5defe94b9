"""Deletion vectors: the places of the rows of a file that no longer count, as Delta's log and its files hold them.

Law    places(encode(p)) = p, for any places below 2^63
Forms  inline: the bitmap itself stands in the log, in base 85
       in a file: ``deletion_vector_<uuid>.bin`` of the table's folder (named by the UUID in base 85), or any file (named by
       its URI). Such a file holds a byte that tells its version, then vectors: a length, the bitmap, its checksum
Bitmap a number that tells the format, then a 64-bit Roaring bitmap in the portable form
"""

from __future__ import annotations

import struct
import uuid
from base64 import b85decode, b85encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote
from zlib import crc32

import numpy as np
from pyroaring import BitMap64

from trickle.tables.delta.driver.fit import NeedsSparkError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from numpy.typing import NDArray

    from trickle.tables.storage.schemes import Folder

    Places: TypeAlias = NDArray[np.int64]
    """Numbers of rows of a file, from 0, in order, each once."""

    Descriptor: TypeAlias = Mapping[str, Any]
    """What the log says of a vector."""

_PORTABLE: Final = struct.pack("<i", 1681511377)
"""Says that a portable bitmap follows; Delta knows another form, which it does not write to storage."""

_FILE_VERSION: Final = b"\x01"
_LENGTH: Final = struct.Struct(">i")
_CHECKSUM: Final = struct.Struct(">I")
_ENCODED_UUID: Final = 20
"""Characters of the 16 bytes of a UUID."""

_Z85: Final = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85: Final = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_Z85: Final = bytes.maketrans(_B85, _Z85)
_FROM_Z85: Final = bytes.maketrans(_Z85, _B85)


# -- bitmaps


def encode(places: Places) -> bytes:
    """Return the bitmap of some places, in any order."""
    rows = BitMap64(places.tolist())
    rows.run_optimize()
    return _PORTABLE + bytes(rows.serialize())


def decode(data: bytes) -> Places:
    """Return the places of a bitmap.

    Raises:
        ValueError: It is of a form that is not known here, or damaged.
    """
    if not data.startswith(_PORTABLE) or len(data) == len(_PORTABLE):
        message = f"{len(data)} bytes that are not a portable bitmap"
        raise ValueError(message)
    rows = BitMap64.deserialize(data[len(_PORTABLE) :])
    return np.frombuffer(rows.to_array(), np.uint64).astype(np.int64)


def unmasked(places: Places, mask: Places | None) -> Any:
    """Tell of places in a file, in any order, which are not masked."""
    if mask is None or not len(mask):
        return np.ones(len(places), np.bool_)
    at = np.minimum(np.searchsorted(mask, places), len(mask) - 1)
    return mask[at] != places


# -- base 85


def to_base85(data: bytes) -> str:
    """Return bytes as a text; zeros follow up to a multiple of four bytes.

    >>> to_base85(bytes.fromhex("864fd26fb559f75b"))
    'HelloWorld'
    """
    return b85encode(data, pad=True).translate(_TO_Z85).decode("ascii")


def from_base85(text: str) -> bytes:
    """Return the bytes of a text, with the zeros that follow.

    Raises:
        ValueError: It is not one that stands for bytes.
    """
    return b85decode(text.encode("ascii").translate(_FROM_Z85))


# -- in the log


def vector_path(descriptor: Descriptor) -> str | None:
    """Return the path of the file that holds a vector, as the log names files; None if it stands in the log itself.

    Raises:
        ValueError: The log names no file.
    """
    text = str(descriptor["pathOrInlineDv"])
    match descriptor["storageType"]:
        case "u":
            prefix, encoded = text[:-_ENCODED_UUID], text[-_ENCODED_UUID:]
            name = f"deletion_vector_{uuid.UUID(bytes=from_base85(encoded))}.bin"
            return f"{quote(prefix)}/{name}" if prefix else name
        case "p":
            return text
    return None


def inline_vector(places: Places) -> dict[str, Any]:
    """Return what the log says of a vector that stands in it."""
    data = encode(places)
    return {
        "storageType": "i",
        "pathOrInlineDv": to_base85(data),
        "sizeInBytes": len(data),
        "cardinality": len(places),
    }


# -- in files


@dataclass(frozen=True, slots=True)
class VectorFile:
    """A file of vectors that is to be written.

    Attributes:
        name: In the table's folder.
        descriptors: What the log says of each vector, in the order in which they were given.
    """

    name: str
    data: bytes
    descriptors: tuple[dict[str, Any], ...]


def vector_file(vectors: Sequence[Places]) -> VectorFile:
    """Return the file that holds some vectors, under a new name."""
    number = uuid.uuid4()
    data = bytearray(_FILE_VERSION)
    descriptors = []
    for places in vectors:
        bitmap = encode(places)
        descriptors.append(
            {
                "storageType": "u",
                "pathOrInlineDv": to_base85(number.bytes),
                "offset": len(data),
                "sizeInBytes": len(bitmap),
                "cardinality": len(places),
            }
        )
        data += _LENGTH.pack(len(bitmap)) + bitmap + _CHECKSUM.pack(crc32(bitmap))
    return VectorFile(f"deletion_vector_{number}.bin", bytes(data), tuple(descriptors))


def read_vectors(descriptors: Sequence[Descriptor], folder: Folder, addresses: Sequence[str | None]) -> list[Places]:
    """Return the places of vectors, those of one file at once.

    ``addresses`` are those of their files, None for what stands in the log and for a file elsewhere than the table.

    Raises:
        NeedsSparkError: One is gone, damaged, or of a form that is not known here.
    """
    by_file: dict[str | None, list[int]] = {}
    for number, address in enumerate(addresses):
        by_file.setdefault(address, []).append(number)
    found: dict[int, Places] = {}
    try:
        for address, numbers in by_file.items():
            some = [descriptors[number] for number in numbers]
            bitmaps = _inline(some) if address is None else _in_file(some, folder, address)
            for number, one, bitmap in zip(numbers, some, bitmaps, strict=True):
                found[number] = decode(bitmap)
                if len(found[number]) != int(one["cardinality"]):
                    raise NeedsSparkError
    except (OSError, ValueError) as error:
        raise NeedsSparkError from error
    return [found[number] for number in range(len(descriptors))]


def _inline(descriptors: Sequence[Descriptor]) -> list[bytes]:
    if any(one["storageType"] != "i" for one in descriptors):
        raise NeedsSparkError
    return [from_base85(str(one["pathOrInlineDv"]))[: int(one["sizeInBytes"])] for one in descriptors]


def _in_file(descriptors: Sequence[Descriptor], folder: Folder, address: str) -> list[bytes]:
    sizes = [int(one["sizeInBytes"]) for one in descriptors]
    starts = [int(one.get("offset") or len(_FILE_VERSION)) for one in descriptors]
    ranges = [(start, _LENGTH.size + size + _CHECKSUM.size) for start, size in zip(starts, sizes, strict=True)]
    return [_checked(*one) for one in zip(folder.storage.get_ranges(address, ranges), sizes, strict=True)]


def _checked(data: bytes, size: int) -> bytes:
    """Return the bitmap of a vector as a file holds it, if it is whole."""
    bitmap = data[_LENGTH.size : _LENGTH.size + size]
    if data[: _LENGTH.size] != _LENGTH.pack(size) or data[_LENGTH.size + size :] != _CHECKSUM.pack(crc32(bitmap)):
        message = "a vector that is cut off, or not what was written"
        raise ValueError(message)
    return bitmap
