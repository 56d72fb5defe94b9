"""Hadoop's settings of object stores in the words of their clients."""

from __future__ import annotations

from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from trickle.errors import StorageError
from trickle.tables.storage import credentials, schemes
from trickle.tables.storage import settings as settings_of
from trickle.tables.storage.credentials import UnmappedError, azure_settings, gcs_settings, s3_settings
from trickle.tables.storage.object_store import ObjectStorage
from trickle.tables.storage.settings import GivenSettings, S3Credential

KEYS = {"fs.s3a.access.key": "a", "fs.s3a.secret.key": "b"}
HOST = "store.dfs.core.windows.net"


@pytest.fixture(autouse=True)
def nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """On no cloud, with no environment."""
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_ACCESS_KEY_ID", *credentials._OF_MACHINE):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(credentials, "_METADATA", ("127.0.0.1", 1))
    monkeypatch.setattr(credentials, "_region_of", lambda _: "eu-central-1")


def s3(**settings: str):
    return s3_settings("shop", "s3a://shop", GivenSettings({**KEYS, **settings}))


@pytest.mark.parametrize(
    ("settings", "config"),
    [
        ({}, {"region": "eu-central-1"}),
        ({"fs.s3a.endpoint": "s3.amazonaws.com"}, {"region": "eu-central-1"}),
        ({"fs.s3a.endpoint.region": "us-west-2"}, {"region": "us-west-2"}),
        (
            {"fs.s3a.endpoint": "s3.eu-west-1.amazonaws.com"},
            {"region": "eu-west-1", "endpoint": "https://s3.eu-west-1.amazonaws.com"},
        ),
        (
            {"fs.s3a.endpoint": "https://minio.local:9000/", "fs.s3a.path.style.access": "true"},
            {"region": "us-east-1", "endpoint": "https://minio.local:9000"},
        ),
        (
            {"fs.s3a.endpoint": "minio.local:9000", "fs.s3a.connection.ssl.enabled": "false"},
            {
                "region": "us-east-1",
                "endpoint": "http://shop.minio.local:9000",
                "virtual_hosted_style_request": True,
            },
        ),
        (
            {"fs.s3a.endpoint": "http://10.0.0.5:9000"},
            {"region": "us-east-1", "endpoint": "http://10.0.0.5:9000"},
        ),
        (
            {"fs.s3a.encryption.algorithm": "SSE-KMS", "fs.s3a.encryption.key": "arn:key"},
            {"region": "eu-central-1", "server_side_encryption": "aws:kms", "sse_kms_key_id": "arn:key"},
        ),
        ({"fs.s3a.requester.pays.enabled": "true"}, {"region": "eu-central-1", "request_payer": True}),
    ],
)
def test_settings_of_s3(settings, config):
    assert s3(**settings).config == config


def test_settings_of_a_bucket_come_before_those_of_all():
    made = s3(**{"fs.s3a.bucket.shop.access.key": "c", "fs.s3a.bucket.other.secret.key": "d"})

    assert made.provider is not None
    keys = made.provider()
    assert (keys["access_key_id"], keys["secret_access_key"], keys["token"]) == ("c", "b", None)


def test_temporary_keys_have_a_token():
    made = s3(**{"fs.s3a.session.token": "t"})

    assert made.provider is not None
    assert made.provider()["token"] == "t"


def test_anonymous_requests_are_not_signed():
    made = s3(**{"fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"})

    assert made.config["skip_signature"] is True
    assert made.provider is None


def test_the_first_provider_that_has_credentials_gives_them(monkeypatch):
    names = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider,\n  org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
    assert s3(**{"fs.s3a.aws.credentials.provider": names}).provider is not None
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "e")
    environment = "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider"
    assert s3(**{"fs.s3a.aws.credentials.provider": environment}).provider is None


@pytest.mark.parametrize(
    "settings",
    [
        {"fs.s3a.aws.credentials.provider": "com.example.OurOwnProvider"},
        {"fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.auth.AssumedRoleCredentialProvider"},
        {"fs.s3a.encryption.algorithm": "SSE-C"},
        {"fs.s3a.custom.signers": "x"},
        {"fs.s3a.access.key": ""},  # and this machine is on no cloud
    ],
)
def test_what_only_hadoop_knows_is_left_to_spark(settings):
    with pytest.raises(UnmappedError) as unmapped:
        s3(**settings)

    assert str(unmapped.value)


def test_of_other_providers_hadoop_itself_is_asked():
    class Asked(GivenSettings):
        def s3_credential(self, location: str) -> S3Credential:
            return {"access_key_id": location, "secret_access_key": "x", "token": "y", "expires_at": None}

    made = s3_settings("shop", "s3a://shop", Asked({"fs.s3a.aws.credentials.provider": "com.example.OurOwnProvider"}))

    assert made.provider is not None
    assert made.provider()["access_key_id"] == "s3a://shop"


def test_a_proxy_is_used():
    made = s3(**{"fs.s3a.proxy.host": "p", "fs.s3a.proxy.port": "3128", "fs.s3a.proxy.username": "u@x"})

    assert made.client == {"proxy_url": "http://u%40x:@p:3128"}


@pytest.mark.parametrize(
    ("settings", "config"),
    [
        ({f"fs.azure.account.key.{HOST}": "k"}, {}),
        (
            {"fs.azure.account.auth.type": "SAS", f"fs.azure.sas.fixed.token.{HOST}": "?sig=1"},
            {},
        ),
        (
            {
                f"fs.azure.account.auth.type.{HOST}": "OAuth",
                "fs.azure.account.oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider",
                "fs.azure.account.oauth2.client.id": "i",
                "fs.azure.account.oauth2.client.secret": "s",
                "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.com/tenant/oauth2/token",
            },
            {"client_id": "i", "client_secret": "s", "tenant_id": "tenant"},
        ),
    ],
)
def test_settings_of_azure(settings, config):
    made = azure_settings(f"abfss://lake@{HOST}", f"lake@{HOST}", GivenSettings(settings))

    assert made.config == {"account_name": "store", "container_name": "lake", **config}


@pytest.mark.parametrize(
    ("root", "settings", "endpoint", "is_open"),
    [
        ("abfs", {"fs.azure.abfs.endpoint": "127.0.0.1:10000"}, "https://127.0.0.1:10000/store", False),
        (
            "abfs",
            {"fs.azure.abfs.endpoint": "127.0.0.1:10000", "fs.azure.always.use.https": "false"},
            "http://127.0.0.1:10000/store",
            True,
        ),
        (
            "abfss",
            {"fs.azure.abfs.endpoint": "127.0.0.1:10000", "fs.azure.always.use.https": "false"},
            "https://127.0.0.1:10000/store",
            False,
        ),
    ],
)
def test_an_emulator_of_azure_is_where_hadoop_finds_it(root, settings, endpoint, is_open):
    key = {f"fs.azure.account.key.{HOST}": "k"}
    made = azure_settings(f"{root}://lake@{HOST}", f"lake@{HOST}", GivenSettings({**key, **settings}))

    assert made.config["endpoint"] == endpoint
    assert made.client == {"allow_http": is_open}
    assert made.is_custom


def test_a_cloud_of_azure_of_its_own_is_asked_for_blobs_and_for_tokens():
    host = "store.dfs.core.usgovcloudapi.net"
    own = {
        "fs.azure.account.auth.type": "OAuth",
        "fs.azure.account.oauth.provider.type": "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider",
        "fs.azure.account.oauth2.client.id": "i",
        "fs.azure.account.oauth2.client.secret": "s",
        "fs.azure.account.oauth2.client.endpoint": "https://login.microsoftonline.us/tenant/oauth2/token",
    }
    made = azure_settings(f"abfss://lake@{host}", f"lake@{host}", GivenSettings(own))

    assert made.config["endpoint"] == "https://store.blob.core.usgovcloudapi.net"
    assert made.config["authority_host"] == "https://login.microsoftonline.us"
    ObjectStorage("azure", f"abfss://lake@{host}", made)


def test_keys_that_are_set_anew_are_used_from_the_next_time_on():
    given = dict(KEYS)
    made = s3_settings("shop", "s3a://shop", GivenSettings(given))
    assert made.provider is not None
    assert made.provider()["access_key_id"] == "a"

    given["fs.s3a.access.key"] = "renewed"

    assert made.provider()["access_key_id"] == "renewed"


class Azure(BaseHTTPRequestHandler):
    """Answers every request, and notes how it was signed."""

    protocol_version = "HTTP/1.1"
    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(parse_qs(urlsplit(self.path).query).get("sig", [self.headers.get("Authorization", "")])[0])
        self.send_response(200)
        for key, value in (("Content-Length", "1"), ("ETag", "x"), ("Last-Modified", "Wed, 01 Jan 2025 00:00:00 GMT")):
            self.send_header(key, value)
        self.end_headers()
        self.wfile.write(b"1")

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize(
    ("settings", "key", "values", "shown"),
    [
        ({}, "fs.azure.account.key", ("a2V5", "b3RoZXI="), None),
        ({"fs.azure.account.auth.type": "SAS"}, "fs.azure.sas.fixed.token", ("?sig=1", "sig=2"), ["1", "2"]),
    ],
)
def test_tokens_and_keys_of_azure_that_are_set_anew_are_used(settings, key, values, shown, monkeypatch):
    monkeypatch.setattr(credentials, "_RENEWED_EVERY", timedelta(0))
    Azure.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Azure)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    given = {f"{key}.{HOST}": values[0], **settings}
    made = azure_settings(f"abfss://lake@{HOST}", f"lake@{HOST}", GivenSettings(given))
    made.config["endpoint"] = f"http://127.0.0.1:{server.server_address[1]}"
    made.client["allow_http"] = True
    storage = ObjectStorage("azure", f"abfss://lake@{HOST}", made)
    try:
        for value in values:
            given[f"{key}.{HOST}"] = value
            assert storage.get(f"abfss://lake@{HOST}/x") == b"1"
            assert value.lstrip("?") in dict(storage._scanned_there([]).options)["storage_options"].values()
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

    assert len(set(Azure.asked)) == 2
    assert shown in (None, Azure.asked)


@pytest.mark.parametrize(
    "settings", [{}, {"fs.azure.account.auth.type": "Custom"}, {"fs.azure.account.auth.type": "SAS"}]
)
def test_what_only_hadoop_knows_of_azure_is_left_to_spark(settings):
    with pytest.raises(UnmappedError):
        azure_settings(f"abfss://lake@{HOST}", f"lake@{HOST}", GivenSettings(settings))


@pytest.mark.parametrize(
    "settings",
    [
        {"fs.gs.auth.impersonation.service.account": "other@shop"},
        {"fs.gs.auth.service.account.private.key": "k", "fs.gs.auth.service.account.json.keyfile": "/k.json"},
        {"fs.gs.encryption.key": "k"},
        {"fs.gs.requester.pays.mode": "AUTO"},
    ],
)
def test_what_only_the_connector_of_google_knows_is_left_to_spark(settings):
    with pytest.raises(UnmappedError, match=next(iter(settings))):
        gcs_settings("shop", GivenSettings(settings))


def test_nobody_writes_to_google_unsigned_and_to_a_server_of_ones_own():
    nobody = {"fs.gs.auth.null.enable": "true", "fs.gs.proxy.address": "p:3128"}
    made = gcs_settings("shop", GivenSettings(nobody))
    own = gcs_settings("shop", GivenSettings({**nobody, "fs.gs.storage.root.url": "http://127.0.0.1:1/"}))

    assert (made.config["skip_signature"], made.client) == (True, {"proxy_url": "http://p:3128"})
    assert own.config["base_url"] == "http://127.0.0.1:1"
    assert own.client["allow_http"]
    assert own.is_custom
    ObjectStorage("gcs", "gs://shop", own)


def test_settings_of_google():
    keyfile = {"fs.gs.auth.type": "SERVICE_ACCOUNT_JSON_KEYFILE", "fs.gs.auth.service.account.json.keyfile": "/k.json"}

    assert gcs_settings("shop", GivenSettings(keyfile)).config == {"bucket": "shop", "service_account": "/k.json"}
    assert gcs_settings("shop", GivenSettings({"fs.gs.auth.type": "UNAUTHENTICATED"})).config["skip_signature"] is True
    with pytest.raises(UnmappedError):
        gcs_settings("shop", GivenSettings({"fs.gs.auth.type": "USER_CREDENTIALS"}))


def test_a_bucket_that_only_spark_can_reach_is_said_once(monkeypatch, caplog):
    monkeypatch.setattr(schemes, "_opened", {})
    monkeypatch.setattr(schemes, "_said", set())
    monkeypatch.setattr(settings_of, "_given", {**KEYS, "fs.s3a.bucket.odd.custom.signers": "ours"})

    with caplog.at_level("WARNING", "trickle"):
        assert [schemes.folder_at(f"s3a://odd/{name}") for name in ("a", "b", "c")] == [None, None, None]

    assert schemes.why_spark("s3a://odd/a") == "fs.s3a.custom.signers"
    assert [record.message for record in caplog.records] == [
        "Spark does all reading and writing of tables in s3a://odd: only it knows fs.s3a.custom.signers."
    ]
    assert schemes.folder_at("s3a://shop/a") is not None
    assert schemes.why_spark("s3a://shop/a") is None
    assert schemes.why_spark("/data/a") is None
    assert schemes.why_spark("ofs://host/a") == "the storage ofs:"


def test_what_only_spark_could_reach_is_tried_again_after_a_while(monkeypatch):
    given = {**KEYS, "fs.s3a.bucket.odd.custom.signers": "ours"}
    monkeypatch.setattr(schemes, "_opened", {})
    monkeypatch.setattr(settings_of, "_given", given)
    assert schemes.folder_at("s3a://odd/a") is None
    del given["fs.s3a.bucket.odd.custom.signers"]
    assert schemes.folder_at("s3a://odd/a") is None

    monkeypatch.setattr(schemes, "_TRIED_EVERY", 0.0)

    assert schemes.folder_at("s3a://odd/a") is not None


def test_a_scheme_that_is_not_known_is_said_once(monkeypatch, caplog):
    monkeypatch.setattr(schemes, "_said", set())

    with caplog.at_level("WARNING", "trickle"):
        assert [schemes.folder_at(f"ofs://host/{name}") for name in ("a", "b")] == [None, None]

    assert [record.message for record in caplog.records] == [
        "Spark does all reading and writing of tables in ofs://host: only it knows the storage ofs:."
    ]


def test_a_bucket_that_takes_long_to_open_keeps_no_other_waiting(monkeypatch):
    begun, goes_on = Event(), Event()

    def slow(bucket: str) -> str:
        begun.set()
        assert goes_on.wait(20)
        return bucket

    monkeypatch.setattr(schemes, "_opened", {})
    monkeypatch.setattr(credentials, "_region_of", slow)
    monkeypatch.setattr(settings_of, "_given", {**KEYS, "fs.s3a.bucket.quick.endpoint.region": "us-east-1"})
    waiting = Thread(target=schemes.folder_at, args=("s3a://slow/a",))
    waiting.start()
    try:
        assert begun.wait(20)
        assert schemes.folder_at("s3a://quick/a") is not None
    finally:
        goes_on.set()
        waiting.join()


def test_settings_that_make_no_client_are_an_error_of_ours():
    made = gcs_settings("shop", GivenSettings({"fs.gs.auth.service.account.json.keyfile": "/not/there.json"}))

    with pytest.raises(StorageError, match=r"STORAGE_SETTINGS.*gs://shop") as refused:
        ObjectStorage("gcs", "gs://shop", made)

    assert "service_account" in refused.value.message
