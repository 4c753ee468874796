"""SpeechBrain's names of the past, taken out of the way of whoever looks at all modules.

Importing SpeechBrain puts objects into ``sys.modules`` that import an optional package as
soon as an attribute is asked for, and raise ImportError where it is absent. ``pickle``,
``inspect`` and test tools ask every module. Nothing here imports by those names.

Functions: :func:`drop_redirects`.
"""

from __future__ import annotations

import sys


def drop_redirects() -> None:
    """Forget the redirected modules; call it once SpeechBrain has been imported."""
    for name, module in list(sys.modules.items()):
        if type(module).__module__ == "speechbrain.utils.importutils":
            del sys.modules[name]
