"""Known vulnerabilities of the installed packages (``make lint AUDIT=1``).

pip-audit asks the advisories of PyPI for every package of this environment; it needs the
network. Exit status: 0 clean or explained, 1 not explained, 2 nothing could be asked.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

EXPLAINED: dict[str, str] = {}
"""Identifier of an advisory -> why it does not matter here."""


def describe(packages: list[dict[str, Any]]) -> tuple[str, int]:
    """What pip-audit's packages say, as a text and an exit status."""
    asked = [package for package in packages if "vulns" in package]
    unasked = sorted(package["name"] for package in packages if "vulns" not in package)
    found = {
        (package["name"], package["version"], advisory["id"])
        for package in asked
        for advisory in package["vulns"]
    }
    lines = [f"asked about {len(asked)} of {len(packages)} packages"]
    if unasked:
        lines.append(f"not asked about, so nothing is known: {', '.join(unasked)}")
    for name, version, identifier in sorted(found):
        lines.append(f"{name} {version}: {identifier}: {EXPLAINED.get(identifier, 'open')}")
    still_open = any(identifier not in EXPLAINED for *_, identifier in found)
    return "\n".join(lines), 1 if still_open else 0 if asked else 2


def main() -> int:
    command = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # nosec B603 # fixed words
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        reason = (done.stderr.strip().splitlines() or ["no message"])[-1]
        print(f"pip-audit could not ask anything: {reason}")
        return 2
    text, status = describe(packages)
    print(text)
    return status


if __name__ == "__main__":
    sys.exit(main())
