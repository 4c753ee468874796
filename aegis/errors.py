"""Errors that a caller can act on.

Every message names the file or table, the rule that was broken, up to three
offending ids, and the way out. Inside a stage an :class:`ItemError` becomes a
failure row; the others stop the stage.
"""


class AegisError(Exception):
    """Base of all errors that this package raises on purpose."""


class TableError(AegisError):
    """A table breaks its schema, or is absent, or was read from the wrong place."""


class ParamError(AegisError):
    """A parameter is unknown, mistyped or out of range."""


class ManifestError(AegisError):
    """A data card, script or checksum list is wrong or disagrees with the data."""


class EngineUnavailable(AegisError):
    """An engine cannot load; the message says what to install or where weights go."""


class RunLocked(AegisError):
    """Another process is working on this run folder."""


class StageFailed(AegisError):
    """A stage ended without its receipt."""


class ReleaseRefused(AegisError):
    """A run may not be released; the message lists why."""


class ItemError(AegisError):
    """One item cannot be processed; it becomes a row with ``status='failed'``."""


class AudioError(ItemError):
    """A recording or a generated signal is unusable (empty, not finite, no audio)."""


class RenderError(ItemError):
    """A renderer refuses or fails one edit; the reason is typed, e.g. ``unsupported: ...``."""


class ReplyError(ItemError):
    """A model's reply breaks its contract."""
