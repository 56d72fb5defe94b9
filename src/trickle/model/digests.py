"""What distinguishes a version of a table from another of the same number: the digest of its commit, and of those before it.

The newest commit alone does not tell where one that others were built on may become another: on S3 a late commit may overwrite
it, and on a file system it may have been there in part when it was read. A part is empty if the commit was not known.
"""

from __future__ import annotations

from collections.abc import Iterable


def digest_of_chain(digests: Iterable[str | None]) -> str:
    """Join the digests of commits, the newest first.

    >>> digest_of_chain(["c", None, "a"])
    'c..a'
    """
    return ".".join(digest or "" for digest in digests)


def commits_before(digest: str | None) -> int:
    """Return how many commits before the version a digest tells of.

    >>> commits_before("c..a"), commits_before("c"), commits_before(None)
    (2, 0, 0)
    """
    return 0 if digest is None else digest.count(".")


def is_same_digest(old: str | None, new: str | None) -> bool:
    """Return whether both stand for the same commits, as far as is known; one alone that is not known stands for others."""
    return old == new or (old is not None and new is not None and first_difference(old, new) is None)


def first_difference(old: str | None, new: str | None) -> int | None:
    """Return how many commits before the version the first one lies that is another; None if none is, as far as is known.

    >>> first_difference("c.b.a", "c.x"), first_difference("c..a", "c.b"), first_difference("c", "d")
    (1, None, 0)
    """
    if old is None or new is None:
        return None
    pairs = enumerate(zip(old.split("."), new.split("."), strict=False))
    return next((place for place, (was, now) in pairs if was != now and was and now), None)
