"""The study's wiring and how it is run.

:data:`STAGES` is the only place that says which notebook reads and writes which
table. A name with ``?`` may be absent.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from aegis.tables import PROJECT


@dataclass(frozen=True)
class Wiring:
    """One notebook: the tables that it reads and the tables that it alone writes."""

    name: str
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    optional: frozenset[str] = frozenset()


def _wiring(name: str, reads: str, writes: str) -> Wiring:
    names = [text.split() for text in (reads, writes)]
    optional = frozenset(n.rstrip("?") for side in names for n in side if n.endswith("?"))
    read, written = (tuple(n.rstrip("?") for n in side) for side in names)
    return Wiring(name, read, written, optional)


_GOLD = "gold_turns? gold_words? gold_mentions? gold_facts?"

# fmt: off
STAGES: dict[str, Wiring] = {wiring.name: wiring for wiring in [
    _wiring("00_corpora", "", f"recordings file_map {_GOLD}"),
    _wiring("01_transcribe", f"recordings {_GOLD}", "words turns turn_times screening"),
    _wiring("02_profiles", f"recordings turns screening {_GOLD}",
            "profiles profile_embeddings voices voice_embeddings backend_distances"),
    _wiring("03_assign_voices", "recordings profiles profile_embeddings voices voice_embeddings backend_distances",
            "assignments assignment_summary"),
    _wiring("04_convert", "recordings turns profiles profile_embeddings voices voice_embeddings assignments",
            "converted"),
    _wiring("05_plan_edits", f"recordings words turns screening {_GOLD}",
            "mentions substitutions edits regions plan_summary"),
    _wiring("06_render_edits", "recordings words turns voices assignments converted mentions edits regions",
            "rendered"),
    _wiring("07_stitch", "recordings turns words converted mentions edits regions rendered",
            "reconstructions timeline"),
    _wiring("08_extract_facts", f"recordings turns screening {_GOLD}", "facts actions chronology inventory_summary"),
    _wiring("09_retranscribe",
            "recordings words turns screening converted mentions substitutions edits regions rendered reconstructions"
            f" timeline {_GOLD}",
            "transcripts turn_transcripts lexical_matches transcript_scores"),
    _wiring("10_judge_facts", "recordings turns facts actions chronology transcripts turn_transcripts reconstructions",
            "fact_verdicts endpoint_verdicts"),
    _wiring("11_judge_edits",
            "recordings turns edits regions rendered reconstructions timeline transcripts turn_transcripts"
            " lexical_matches", "edit_verdicts"),
    _wiring("12_linkage",
            "recordings turns profiles profile_embeddings voices voice_embeddings assignments converted edits regions"
            " rendered reconstructions timeline", "trials eligibility linkage"),
    _wiring("13_contrasts",
            "recordings words turns turn_times screening profiles voices backend_distances assignments"
            " assignment_summary converted mentions substitutions edits regions plan_summary rendered reconstructions"
            " timeline transcripts turn_transcripts lexical_matches transcript_scores trials eligibility linkage"
            f" {_GOLD} facts? actions? chronology? inventory_summary? fact_verdicts? endpoint_verdicts? edit_verdicts?",
            "contrasts claims scorecard"),
]}
# fmt: on


def notebooks_folder() -> Path:
    """``notebooks/`` of the project, or ``$AEGIS_NOTEBOOKS``."""
    return Path(os.environ.get("AEGIS_NOTEBOOKS", PROJECT / "notebooks"))


def find_notebooks(folder: Path | None = None) -> dict[str, Path]:
    """The wired notebooks that exist, in stage order."""
    folder = folder or notebooks_folder()
    places = {path.stem: path for path in [*folder.glob("appendix/*.py"), *folder.glob("*.py")]}
    return {name: places[name] for name in STAGES if name in places}
