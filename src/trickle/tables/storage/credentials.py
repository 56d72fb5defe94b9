"""What Hadoop calls the settings of object stores, in the words of their clients here.

A setting that has no counterpart, and would have the client read or write something else than Spark does, is
``UnmappedError``: Spark does all work then. No text here holds a secret.
"""

from __future__ import annotations

import os
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from urllib.error import HTTPError
from urllib.parse import quote, urlsplit
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    from trickle.tables.storage.settings import S3Credential, Settings

_RENEWED_EVERY: Final = timedelta(minutes=10)
_DEFAULT_REGION: Final = "us-east-1"
_AWS_HOST: Final = re.compile(r"(?:.*\.)?s3[.-]([a-z]{2}(?:-[a-z]+)+-\d)\.amazonaws\.com(?:\.cn)?")
_REGION_HEADER: Final = "x-amz-bucket-region"
_ASKED_FOR: Final = 5.0
"""Seconds."""

_METADATA: Final = ("169.254.169.254", 80)
_METADATA_WAIT: Final = 1.0
_OF_MACHINE: Final = (
    *("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "AWS_CONTAINER_CREDENTIALS_FULL_URI"),
    "AWS_WEB_IDENTITY_TOKEN_FILE",
)
_CENTRAL: Final = ("s3.amazonaws.com", "")
_IP_OR_LOCAL: Final = re.compile(r"(\d+\.){3}\d+|\[.*\]|localhost")
_PLAIN_BUCKET: Final = re.compile(r"[a-z0-9-]+")

#: Providers of Hadoop or the AWS SDK, by the last part of their names, that the client's own chain covers.
_OWN_CHAIN: Final = frozenset(
    {
        *("EnvironmentVariableCredentialsProvider", "IAMInstanceCredentialsProvider"),
        "EC2ContainerCredentialsProviderWrapper",
        *(
            "InstanceProfileCredentialsProvider",
            "ContainerCredentialsProvider",
            "WebIdentityTokenFileCredentialsProvider",
        ),
        *("WebIdentityTokenCredentialsProvider", "ContainerCredentialsProviderWrapper"),
    }
)
_OF_ENVIRONMENT: Final = "EnvironmentVariableCredentialsProvider"
_DEFAULT_PROVIDERS: Final = (
    *("TemporaryAWSCredentialsProvider", "SimpleAWSCredentialsProvider", _OF_ENVIRONMENT),
    "IAMInstanceCredentialsProvider",
)
_STATIC: Final = frozenset({"SimpleAWSCredentialsProvider", "TemporaryAWSCredentialsProvider"})
_ANONYMOUS: Final = frozenset({"AnonymousAWSCredentialsProvider", "AnonymousCredentialsProvider"})
_S3_UNMAPPED: Final = ("custom.signers", "signing-algorithm", "s3.signing-algorithm", "accesspoint.arn")
_GS_UNMAPPED: Final = (
    *("fs.gs.auth.impersonation.service.account", "fs.gs.encryption.key", "fs.gs.auth.access.token.provider.impl"),
    *("fs.gs.auth.service.account.private.key", "fs.gs.auth.service.account.keyfile", "fs.gs.auth.client.id"),
)

#: A service account of Google that signs nothing.
_NOBODY: Final = '{"disable_oauth": true, "client_email": "", "private_key": "", "private_key_id": ""}'


class UnmappedError(Exception):
    """A setting has no counterpart in the client here."""


@dataclass(slots=True)
class ClientSettings:
    """What a client of an object store is made with.

    Attributes:
        config: Its settings.
        client: How it connects.
        provider: What gives it credentials, each time when the last ones end; None if the settings hold them.
        is_custom: True for a server of one's own, of which nobody knows whether it can put a file if it is absent.
    """

    config: dict[str, Any]
    client: dict[str, Any] = field(default_factory=dict)
    provider: Callable[[], Any] | None = None
    is_custom: bool = False

    def __repr__(self) -> str:
        return f"ClientSettings({', '.join(sorted(self.config))})"


def s3_settings(bucket: str, location: str, settings: Settings) -> ClientSettings:
    """Return the settings of a bucket of S3 or a server that speaks like it.

    Raises:
        UnmappedError: Only Hadoop knows what one of them means.
    """

    def get(key: str) -> str | None:
        return settings.get(f"fs.s3a.bucket.{bucket}.{key}") or settings.get(f"fs.s3a.{key}")

    for key in _S3_UNMAPPED:
        if get(key):
            raise UnmappedError(f"fs.s3a.{key}")
    is_open = (get("connection.ssl.enabled") or "true").lower() == "false"
    host = (get("endpoint") or "").rstrip("/")
    made = ClientSettings(_s3_encryption(get), client=_proxy(get))
    named = get("endpoint.region") or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if (bare := urlsplit(host).netloc if "://" in host else host) not in _CENTRAL:
        url = host if "://" in host else f"{'http' if is_open else 'https'}://{host}"
        ours = _AWS_HOST.fullmatch(bare)
        named = named or (ours[1] if ours else _DEFAULT_REGION)
        if not ours:
            made.is_custom = True
            is_path = (get("path.style.access") or "false").lower() == "true" or not _PLAIN_BUCKET.fullmatch(bucket)
            if not is_path and not _IP_OR_LOCAL.fullmatch(urlsplit(url).hostname or ""):
                scheme, _, rest = url.partition("://")
                url = f"{scheme}://{bucket}.{rest}"
                made.config["virtual_hosted_style_request"] = True
        made.config["endpoint"] = url
        made.client["allow_http"] = url.startswith("http:")
    made.config["region"] = named or _region_of(bucket)
    if get("requester.pays.enabled") == "true":
        made.config["request_payer"] = True
    more, made.provider = _s3_credentials(get, settings, location)
    made.config.update(more)
    return made


def _s3_credentials(
    get: Callable[[str], str | None], settings: Settings, location: str
) -> tuple[dict[str, Any], Callable[[], Any] | None]:
    """Take the first provider that has credentials, as Hadoop does; which of those that must be asked, Hadoop tells."""
    named = re.split(r"[\s,]+", (get("aws.credentials.provider") or "").strip())
    providers = [name.rpartition(".")[2].rpartition("$")[2] for name in named if name] or list(_DEFAULT_PROVIDERS)
    while providers:
        provider = providers[0]
        if provider in _ANONYMOUS:
            return {"skip_signature": True}, None
        if provider in _STATIC:
            keys = _lasting_keys(get, settings, is_temporary=provider.startswith("Temporary"))
            if keys() is not None:
                return {}, keys
        elif provider == _OF_ENVIRONMENT:
            if "AWS_ACCESS_KEY_ID" in os.environ:
                return {}, None  # the client reads it by itself
        else:
            break
        providers.pop(0)
    if settings.s3_credential(location) is not None:
        return {}, lambda: settings.s3_credential(location)
    if not providers or not _OWN_CHAIN.issuperset(providers) or not _is_on_cloud():
        raise UnmappedError(f"the credentials of {', '.join(providers) or 'fs.s3a.access.key'}")
    return {}, None


def _is_on_cloud() -> bool:
    """Return whether anybody gives this machine credentials: elsewhere the client would ask for a minute."""
    if any(name in os.environ for name in _OF_MACHINE):
        return True
    try:
        socket.create_connection(_METADATA, timeout=_METADATA_WAIT).close()
    except OSError:
        return False
    return True


def _lasting_keys(
    get: Callable[[str], str | None], settings: Settings, *, is_temporary: bool
) -> Callable[[], S3Credential | None]:
    """Return what reads keys from the settings, now and again: who sets new ones sets them there."""

    def keys() -> S3Credential | None:
        settings.read_again()
        access, secret = get("access.key"), get("secret.key")
        token = get("session.token") if is_temporary else None
        if not access or not secret or (is_temporary and not token):
            return None
        ends = datetime.now(UTC) + _RENEWED_EVERY
        return {"access_key_id": access, "secret_access_key": secret, "token": token, "expires_at": ends}

    return keys


def _region_of(bucket: str) -> str:
    """Ask S3 where a bucket is: it says so to anyone, in whatever answer."""
    request = Request(f"https://s3.amazonaws.com/{bucket}", method="HEAD")
    try:
        with urlopen(request, timeout=_ASKED_FOR) as answer:
            found = answer.headers.get(_REGION_HEADER)
    except HTTPError as error:
        found = error.headers.get(_REGION_HEADER)
    except OSError:
        found = None
    return found or _DEFAULT_REGION


def _s3_encryption(get: Callable[[str], str | None]) -> dict[str, Any]:
    method = get("encryption.algorithm") or get("server-side-encryption-algorithm")
    if method is None:
        return {}
    if method not in ("AES256", "SSE-KMS"):
        raise UnmappedError(f"the encryption {method}")
    if method == "AES256":
        return {"server_side_encryption": "AES256"}
    key = get("encryption.key") or get("server-side-encryption.key")
    return {"server_side_encryption": "aws:kms", **({"sse_kms_key_id": key} if key else {})}


def _proxy(get: Callable[[str], str | None]) -> dict[str, Any]:
    host = get("proxy.host")
    if host is None:
        return {}
    user, password = get("proxy.username"), get("proxy.password")
    scheme = "https" if get("proxy.ssl.enabled") == "true" else "http"
    return {"proxy_url": f"{scheme}://{_userinfo(user, password)}{host}:{get('proxy.port') or 80}"}


def _userinfo(user: str | None, password: str | None) -> str:
    return f"{quote(user, safe='')}:{quote(password or '', safe='')}@" if user else ""


def azure_settings(root: str, authority: str, settings: Settings) -> ClientSettings:
    """Return the settings of a container of Azure, given as ``container@account.dfs.core.windows.net``.

    Raises:
        UnmappedError: Only Hadoop knows what one of them means.
    """
    container, at, host = authority.partition("@")
    if not at or not host:
        raise UnmappedError("a location without a container")
    account, _, domain = host.partition(".")

    def get(key: str) -> str | None:
        return settings.get(f"fs.azure.{key}.{host}") or settings.get(f"fs.azure.{key}")

    made = ClientSettings({"account_name": account, "container_name": container})
    server = settings.get("fs.azure.abfs.endpoint") or ""
    if ":" in server:  # of one's own, an emulator; Hadoop too has the account in the path then
        is_open = root.startswith("abfs:") and (settings.get("fs.azure.always.use.https") or "true").lower() == "false"
        made.config["endpoint"] = f"{'http' if is_open else 'https'}://{server}/{account}"
        made.client["allow_http"] = is_open
        made.is_custom = True
    elif not domain.endswith(("core.windows.net", "fabric.microsoft.com")):
        made.config["endpoint"] = f"https://{host.replace('.dfs.', '.blob.')}"
        made.is_custom = True
    kind = get("account.auth.type") or "SharedKey"
    if kind == "SharedKey":
        made.provider = _lasting_secret("access_key", "account.key", get, settings)
        if made.provider() is None:
            raise UnmappedError("an account without fs.azure.account.key")
    elif kind == "SAS":
        made.provider = _lasting_secret("sas_token", "sas.fixed.token", get, settings)
        if made.provider() is None:
            raise UnmappedError("a provider of SAS tokens")
    elif kind == "OAuth":
        made.config.update(_azure_oauth(get))
    else:
        raise UnmappedError(f"fs.azure.account.auth.type={kind}")
    return made


def _lasting_secret(
    name: str, key: str, get: Callable[[str], str | None], settings: Settings
) -> Callable[[], Mapping[str, Any] | None]:
    """Return what reads an account's key or token from the settings, now and again."""

    def secret() -> Mapping[str, Any] | None:
        settings.read_again()
        found = get(key)
        return None if found is None else {name: found.lstrip("?"), "expires_at": datetime.now(UTC) + _RENEWED_EVERY}

    return secret


def _azure_oauth(get: Callable[[str], str | None]) -> dict[str, Any]:
    provider = (get("account.oauth.provider.type") or "").rpartition(".")[2]
    client, secret = get("account.oauth2.client.id"), get("account.oauth2.client.secret")
    given = urlsplit(get("account.oauth2.client.endpoint") or "")
    tenant = given.path.strip("/").partition("/")[0] or get("account.oauth2.msi.tenant") or ""
    if provider == "ClientCredsTokenProvider" and client and secret and tenant:
        made = {"client_id": client, "client_secret": secret, "tenant_id": tenant}
        is_public = given.netloc in ("", "login.microsoftonline.com")
        return made if is_public else {**made, "authority_host": f"{given.scheme}://{given.netloc}"}
    if provider == "MsiTokenProvider":
        return {"client_id": client} if client else {}
    if provider == "WorkloadIdentityTokenProvider" and client:
        file = get("account.oauth2.token.file") or os.environ.get("AZURE_FEDERATED_TOKEN_FILE", "")
        return {"client_id": client, "tenant_id": tenant, "federated_token_file": file}
    raise UnmappedError(f"fs.azure.account.oauth.provider.type={provider}")


def gcs_settings(bucket: str, settings: Settings) -> ClientSettings:
    """Return the settings of a bucket of Google Cloud Storage.

    Raises:
        UnmappedError: Only Hadoop knows what one of them means.
    """
    for key in _GS_UNMAPPED:
        if settings.get(key):
            raise UnmappedError(key)
    if (payer := settings.get("fs.gs.requester.pays.mode") or "DISABLED") != "DISABLED":
        raise UnmappedError(f"fs.gs.requester.pays.mode={payer}")
    made = ClientSettings({"bucket": bucket}, client=_proxy_of_google(settings))
    kind = settings.get("fs.gs.auth.type")
    if kind is None and settings.get("fs.gs.auth.null.enable") == "true":  # what connectors before 3.0 call it
        kind = "UNAUTHENTICATED"
    file = settings.get("fs.gs.auth.service.account.json.keyfile")
    file = file or settings.get("google.cloud.auth.service.account.json.keyfile")
    url = settings.get("fs.gs.storage.root.url")
    if kind == "UNAUTHENTICATED":
        # Without a signature the client writes nothing: it asks the machine for a token first.
        made.config |= {"skip_signature": True} if url is None else {"service_account_key": _NOBODY}
    elif kind in (None, "SERVICE_ACCOUNT_JSON_KEYFILE") and file:
        made.config["service_account"] = file
    elif kind not in (None, "APPLICATION_DEFAULT", "COMPUTE_ENGINE"):
        raise UnmappedError(f"fs.gs.auth.type={kind}")
    if url is not None:
        made.config["base_url"] = url.rstrip("/")
        made.client["allow_http"] = url.startswith("http:")
        made.is_custom = True
    return made


def _proxy_of_google(settings: Settings) -> dict[str, Any]:
    address = settings.get("fs.gs.proxy.address")
    if address is None:
        return {}
    user, password = settings.get("fs.gs.proxy.username"), settings.get("fs.gs.proxy.password")
    return {"proxy_url": f"http://{_userinfo(user, password)}{address}"}
