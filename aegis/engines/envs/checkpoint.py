"""Checkpoints of old PyTorch programs, read without letting them run code.

PyTorch 2.0 cannot read an ``argparse.Namespace`` with ``weights_only=True``. Here the pickle
inside the file may name tensors, their storages, ``OrderedDict`` and ``Namespace``; anything
else is refused by name before it is imported.
"""

from __future__ import annotations

import pickle  # nosec B403 # only subclassed, to read less than pickle does
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from serve import Unavailable

ALLOWED = frozenset({
    ("argparse", "Namespace"), ("collections", "OrderedDict"),
    ("torch._utils", "_rebuild_tensor_v2"), ("torch._utils", "_rebuild_parameter"),
    ("torch", "Size"), ("torch", "device"),
    *(("torch", f"{kind}Storage") for kind in (
        "Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool",
    )),
})  # fmt: skip
"""What a checkpoint may name: module, name."""


class Unpickler(pickle.Unpickler):
    """Finds what is :data:`ALLOWED` and refuses the rest."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in ALLOWED:
            raise Unavailable(f"the checkpoint names {module}.{name}, which is not weights")
        return super().find_class(module, name)


def _load(file: Any, **options: Any) -> Any:
    return Unpickler(file, **options).load()


def load_checkpoint(path: str | Path) -> dict[str, Any]:
    """The content of a checkpoint, on the CPU.

    Raises ``Unavailable`` when it names anything that is not :data:`ALLOWED`.
    """
    import torch

    module = SimpleNamespace(Unpickler=Unpickler, load=_load, __name__="checkpoint")
    return torch.load(  # nosec B614 # through the list above, which weights_only cannot take
        path, map_location="cpu", pickle_module=module, weights_only=False
    )
