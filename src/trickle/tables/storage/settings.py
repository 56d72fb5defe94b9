"""Where the settings of object stores come from: the Hadoop settings of the Spark session, else what a command was given.

Hadoop keeps one file system for a bucket in a process, and so does this: the settings are the process's, not a session's.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, Protocol, TypedDict

from trickle.errors import StorageError

_PREFIX: Final = "spark.hadoop."
_ASKED_EVERY: Final = timedelta(minutes=10)
"""How long credentials serve that do not say when they end."""


class S3Credential(TypedDict):
    """Temporary or lasting keys of S3, as obstore takes them."""

    access_key_id: str
    secret_access_key: str
    token: str | None
    expires_at: datetime | None


class Settings(Protocol):
    """Hadoop's settings by their names."""

    def get(self, key: str) -> str | None:
        """Return a setting, None if it is not set; secrets that lie in a credential store too."""
        ...

    def read_again(self) -> None:
        """Forget what was read, so that the next question is answered by the settings as they are then."""
        ...

    def s3_credential(self, location: str) -> S3Credential | None:
        """Return the keys that Hadoop's own S3 client would use for a bucket now, None if there is none to ask."""
        ...


@dataclass(frozen=True, slots=True)
class GivenSettings:
    """Settings of a process without Spark."""

    known: Mapping[str, str] = field(repr=False)

    def get(self, key: str) -> str | None:
        """Return a setting."""
        return self.known.get(key) or None

    def read_again(self) -> None:
        """Do nothing: nothing was copied."""

    def s3_credential(self, location: str) -> S3Credential | None:  # noqa: ARG002 - there is no client of Hadoop's
        """Return none."""
        return None


class SparkSettings:
    """The settings of the Spark session of this process."""

    def __init__(self, context: Any) -> None:
        """Bind to a Spark context; reads nothing yet."""
        self.context = context
        self._conf: Any = None

    def get(self, key: str) -> str | None:
        """Return a setting; ``getPassword`` opens the stores of secrets too, and is how Hadoop's own clients read them."""
        from py4j.protocol import Py4JJavaError

        if self._conf is None:
            self._conf = hadoop_conf(self.context)
        try:
            found = self._conf.getPassword(key)
        except Py4JJavaError as error:
            raise unreadable_setting(key, str(error.java_exception.getClass().getSimpleName())) from error
        text = self._conf.get(key) if found is None else "".join(found)
        return str(text).strip() or None if text is not None else None

    def read_again(self) -> None:
        """Let go of the copy of the settings that Spark made."""
        self._conf = None

    def s3_credential(self, location: str) -> S3Credential | None:
        """Ask Hadoop's client: it knows roles, profiles, and providers of one's own.

        Whether it is Hadoop's own client, and not another of the same scheme, is seen by its class.
        """
        providers = None
        try:
            system = self.context._jvm.org.apache.hadoop.fs.Path(location).getFileSystem(hadoop_conf(self.context))
            if not str(system.getClass().getName()).startswith("org.apache.hadoop.fs.s3a."):
                return None
            providers = system.getS3AInternals().shareCredentials("trickle")
            return _credential(providers.resolveCredentials())
        except Exception:  # of a provider of any kind: Spark will say what is wrong
            return None
        finally:
            if providers is not None:
                providers.close()


def unreadable_setting(key: str, why: str) -> StorageError:
    """Return the error of a setting whose value lies in a store of secrets that cannot be read."""
    return StorageError(
        "STORAGE_SETTINGS",
        f"Hadoop cannot read the setting {key} ({why}).",
        hint="Check hadoop.security.credential.provider.path and the files it names.",
    )


def _credential(found: Any) -> S3Credential:
    token = str(found.sessionToken()) if "Session" in str(found.getClass().getSimpleName()) else None
    ends = found.expirationTime()
    return {
        "access_key_id": str(found.accessKeyId()),
        "secret_access_key": str(found.secretAccessKey()),
        "token": token,
        "expires_at": datetime.fromtimestamp(ends.get().getEpochSecond(), UTC)
        if ends.isPresent()
        else datetime.now(UTC) + _ASKED_EVERY,
    }


def hadoop_conf(context: Any) -> Any:
    """Return the JVM's own settings of the Spark session."""
    from pyspark.sql import SparkSession

    session: Any = SparkSession.getActiveSession() or SparkSession._instantiatedSession
    if session is None or session.sparkContext is not context:
        return context._jsc.hadoopConfiguration()
    return session._jsparkSession.sessionState().newHadoopConf()


_given: dict[str, str] = {}


def use_settings(settings: Mapping[str, str]) -> None:
    """Take Spark's settings for a process in which no Spark runs; those that are not for Hadoop are passed over."""
    _given.update({key.removeprefix(_PREFIX): value for key, value in settings.items() if key.startswith(_PREFIX)})


def running_spark() -> object | None:
    """Return the Spark context of this process, None if there is none; does not load Spark."""
    pyspark = sys.modules.get("pyspark")
    context: Any = None if pyspark is None else pyspark.SparkContext._active_spark_context
    return None if context is None or context._jsc is None else context


def current_settings() -> Settings:
    """Return the settings of this process."""
    context = running_spark()
    return GivenSettings(_given) if context is None else SparkSettings(context)
