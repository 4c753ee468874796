from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

PROJECT = Path(__file__).resolve().parent.parent
OWN = {"python=3.11", "pip", "quarto", "ffmpeg<8", "espeak-ng", "-e ."}


def pins() -> list[str]:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    return project["dependencies"] + project["optional-dependencies"]["test"]


def test_conda_and_pip_pins_are_equal_as_text() -> None:
    content = yaml.safe_load((PROJECT / "environment.yml").read_text())["dependencies"]
    listed = [line for line in content if isinstance(line, str)]
    for section in content:
        listed += section["pip"] if isinstance(section, dict) else []
    assert sorted(set(listed) - OWN) == sorted(pins())
    assert len(listed) == len(set(listed))


@pytest.mark.parametrize("pin", pins())
def test_every_dependency_is_pinned(pin: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.+]*|setuptools<81", pin)


def test_the_install_script_takes_the_pinned_torch() -> None:
    (torch,) = [pin for pin in pins() if pin.startswith("torch==")]
    script = (PROJECT / "scripts" / "setup_venv.sh").read_text()
    assert set(re.findall(r"torch==[0-9.]+", script)) == {torch}


def test_make_has_at_most_ten_documented_targets() -> None:
    text = (PROJECT / "Makefile").read_text()
    documented = re.findall(r"^([a-z-]+):.*##", text, re.MULTILINE)
    phony = re.search(r"^\.PHONY: (.*)$", text, re.MULTILINE)
    assert phony is not None
    assert sorted(documented) == sorted(phony[1].split())
    assert len(documented) <= 10


@pytest.mark.parametrize("script", ["setup_venv.sh", "system_packages.sh"])
def test_scripts_are_valid_shell(script: str) -> None:
    subprocess.run(["sh", "-n", str(PROJECT / "scripts" / script)], check=True)


def test_ci_is_make_test() -> None:
    assert "exec make test" in (PROJECT / ".ci" / "run").read_text()
