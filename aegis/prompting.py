"""Prompts as versioned files: system text, user template, reply schema.

Unit: one prompt, ``aegis/prompts/<name>.yaml`` with ``name``, ``version``, ``schema`` (a
model of :mod:`aegis.replies`), ``system`` and ``user``. ``{field}`` in ``user`` is replaced
by the caller; other braces stand for themselves. A prompt's hash covers all its fields and
the reply's JSON schema, and is recorded with every verdict.

Functions: :func:`read_prompt`, :func:`read_prompts`, :func:`fill`, :func:`show_prompt`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import yaml
from pydantic import BaseModel

from aegis.errors import ManifestError
from aegis.replies import SCHEMAS

FOLDER = Path(__file__).resolve().parent / "prompts"
_FIELDS = {"name", "version", "schema", "system", "user"}
_FIELD = re.compile(r"\{([a-z_]+)\}")


@dataclass(frozen=True)
class Prompt:
    """One prompt; ``fields`` are the names that the user template asks for."""

    name: str
    version: int
    schema_name: str
    system: str
    user: str

    @property
    def schema(self) -> type[BaseModel]:
        return SCHEMAS[self.schema_name]

    @property
    def fields(self) -> frozenset[str]:
        return frozenset(_FIELD.findall(self.user))

    @property
    def sha256(self) -> str:
        parts = [self.name, self.version, self.system, self.user, self.schema.model_json_schema()]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@lru_cache(maxsize=64)
def read_prompt(name: str, folder: Path = FOLDER) -> Prompt:
    """One prompt by name.

    Raises
    ------
    ManifestError
        No such file; a field is missing, unknown or empty; the schema is not known.
    """
    path = folder / f"{name}.yaml"
    if not path.exists():
        raise ManifestError(f"{path.name}: no such prompt")
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or set(content) != _FIELDS:
        found = sorted(content) if isinstance(content, dict) else type(content).__name__
        raise ManifestError(f"{path.name}: fields must be {sorted(_FIELDS)}, are {found}")
    if content["name"] != name or content["schema"] not in SCHEMAS:
        raise ManifestError(f"{path.name}: name or schema {content['schema']!r} is wrong")
    system, user = content["system"].strip(), content["user"].strip()
    return Prompt(name, int(content["version"]), content["schema"], system, user)


def read_prompts(folder: Path = FOLDER) -> list[Prompt]:
    """All prompts, by name."""
    return [read_prompt(path.stem, folder) for path in sorted(folder.glob("*.yaml"))]


def fill(prompt: Prompt, values: Mapping[str, str]) -> str:
    """The user message; every field must be given, and nothing else.

    Raises
    ------
    ManifestError
        The values are not exactly the template's fields.
    """
    if set(values) != prompt.fields:
        raise ManifestError(
            f"{prompt.name}: fields {sorted(prompt.fields)}, given {sorted(values)}"
        )
    return _FIELD.sub(lambda match: values[match.group(1)], prompt.user)


def show_prompt(prompt: Prompt) -> str:
    """A prompt as Markdown: system, user template and reply schema, whole."""
    schema = json.dumps(prompt.schema.model_json_schema(), indent=1)
    blocks = (("System", prompt.system), ("User", prompt.user), ("Reply", schema))
    parts = [f"## `{prompt.name}` (version {prompt.version})"]
    parts += [f"{title}\n\n```text\n{text}\n```" for title, text in blocks]
    return "\n\n".join(parts)
