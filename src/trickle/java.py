"""Finds a Java that Spark 4.1 runs on."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trickle.errors import SessionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: Spark 4.1 runs on 17 and 21. From 24 on Hadoop's calls into the security manager fail.
SUPPORTED_MAJORS: Final = range(17, 24)
#: Spark always starts its JVM with this module; some trimmed runtimes lack it and die at once.
REQUIRED_MODULE: Final = "jdk.incubator.vector"
INSTALL_ROOTS: Final = ("/usr/lib/jvm", "/opt/java", "/Library/Java/JavaVirtualMachines")
HINT: Final = (
    "Install Java 17 or 21 (Debian, Ubuntu: `apt-get install openjdk-17-jre-headless`; "
    "macOS: `brew install openjdk@17`), or point JAVA_HOME at one."
)


@dataclass(frozen=True, slots=True)
class Java:
    """One installed Java: its home folder, feature version and whether the modules Spark needs are in it."""

    home: Path
    major: int
    is_complete: bool

    @property
    def is_supported(self) -> bool:
        """Spark can run on it."""
        return self.major in SUPPORTED_MAJORS and self.is_complete


def find_java(env: Mapping[str, str] | None = None) -> Java:
    """Return the Java to run Spark on: that of JAVA_HOME, else the one on the PATH, else any installed one.

    Raises:
        SessionError: JAVA_MISSING if there is none, JAVA_UNSUPPORTED if none of those found will do.
    """
    env = os.environ if env is None else env
    found = []
    for home in _homes(env):
        java = inspect_java(home)
        if java is None:
            continue
        if java.is_supported:
            return java
        found.append(java)
    if not found:
        raise SessionError("JAVA_MISSING", "Spark needs Java 17 or 21, and no Java was found.", hint=HINT)
    seen = ", ".join(f"Java {java.major} in {java.home}" for java in dict.fromkeys(found))
    raise SessionError(
        "JAVA_UNSUPPORTED", f"Spark needs Java 17 or 21 with the module {REQUIRED_MODULE}; found {seen}.", hint=HINT
    )


def inspect_java(home: Path) -> Java | None:
    """Read a Java's version from its ``release`` file (no JVM is started), else ask the program itself."""
    release = home / "release"
    if release.is_file():
        facts = dict(re.findall(r'^(\w+)="(.*)"$', release.read_text(encoding="utf-8"), re.MULTILINE))
        if "JAVA_VERSION" in facts:
            modules = facts.get("MODULES", "").split()
            return Java(home, _major(facts["JAVA_VERSION"]), is_complete=not modules or REQUIRED_MODULE in modules)
    program = home / "bin" / "java"
    try:
        said = subprocess.run([program, "-version"], capture_output=True, text=True, check=True, timeout=60).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r'version "([^"]+)"', said)
    return Java(home, _major(version[1]), is_complete=True) if version else None


def _homes(env: Mapping[str, str]) -> Iterator[Path]:
    if env.get("JAVA_HOME"):
        yield Path(env["JAVA_HOME"])
    on_path = shutil.which("java", path=env.get("PATH"))
    if on_path:
        yield Path(on_path).resolve().parent.parent
    for root in map(Path, INSTALL_ROOTS):
        if root.is_dir():
            for folder in sorted(root.iterdir()):
                home = folder / "Contents" / "Home"
                candidate = home if home.is_dir() else folder
                if (candidate / "bin" / "java").is_file():
                    yield candidate


def _major(version: str) -> int:
    """``17.0.15`` -> 17; the old style ``1.8.0_402`` -> 8."""
    numbers = [int(n) for n in re.findall(r"\d+", version)]
    if not numbers:
        return 0
    return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]
