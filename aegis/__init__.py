"""AegisVox study: factorised de-identification of long clinical conversations.

The notebooks are the study; this package holds what they use twice or what is
heavy. Start at ``aegis.pipeline`` (the stage table) or ``aegis.tables`` (what
each table means). Importing ``aegis`` loads nothing heavy.
"""

__version__ = "0.1.0"
