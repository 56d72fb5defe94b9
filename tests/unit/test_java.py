from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trickle import java
from trickle.errors import SessionError

if TYPE_CHECKING:
    from pathlib import Path


def make_java(home: Path, version: str, modules: str = "java.base jdk.incubator.vector") -> dict[str, str]:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").touch(mode=0o755)
    (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
    return {"JAVA_HOME": str(home), "PATH": ""}


@pytest.fixture(autouse=True)
def no_installed_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(java, "INSTALL_ROOTS", ())


def test_java_home_is_taken_first(tmp_path: Path) -> None:
    env = make_java(tmp_path / "jdk", "21.0.2")

    assert java.find_java(env) == java.Java(tmp_path / "jdk", 21, is_complete=True)


@pytest.mark.parametrize(
    ("version", "modules"),
    [("1.8.0_402", ""), ("11.0.22", ""), ("25", ""), ("17.0.1", "java.base")],
    ids=["java 8", "java 11", "java 25", "17 without the vector module"],
)
def test_java_spark_cannot_use_is_named_with_what_to_install(tmp_path: Path, version: str, modules: str) -> None:
    env = make_java(tmp_path / "jdk", version, modules)

    with pytest.raises(SessionError) as caught:
        java.find_java(env)

    assert caught.value.code == "JAVA_UNSUPPORTED"
    assert str(tmp_path / "jdk") in caught.value.message
    assert "openjdk-17-jre-headless" in caught.value.hint


def test_unusable_java_home_gives_way_to_an_installed_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = make_java(tmp_path / "old", "11.0.22")
    make_java(tmp_path / "jvm" / "java-17", "17.0.15")
    monkeypatch.setattr(java, "INSTALL_ROOTS", (str(tmp_path / "jvm"),))

    assert java.find_java(env).home == tmp_path / "jvm" / "java-17"


def test_no_java_at_all_is_said(tmp_path: Path) -> None:
    with pytest.raises(SessionError) as caught:
        java.find_java({"PATH": str(tmp_path)})

    assert caught.value.code == "JAVA_MISSING"
