"""The fine-tuned attacker of ``aegis leakage``: an encoder trained on the anonymised folder.

Unit: a system and pseudo-profile, attacked on the speakers that the encoder never heard. The
split is the one of the other learned attackers, so that their rows compare.

Functions: :func:`attack_adapted`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from aegis import dimensions, engines
from aegis.attackers import split_speakers
from aegis.engines.finetune import Recipe, adapt_encoder
from aegis.errors import ParamError
from aegis.leakage_tables import ALL, Settings
from aegis.segments import ORIGINAL, Segments
from aegis.work.sounds import read_mono


def attack_adapted(
    segments: Segments,
    files: Mapping[tuple[str, str, int], Path],
    name: str,
    settings: Settings,
    condition: str,
    recipe: Recipe | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> pd.DataFrame:
    """Rows of the attacks table for an encoder fine-tuned on all training versions.

    Parameters
    ----------
    segments
        Whole recordings; their vectors are not used.
    files
        The file of every (recording, system, pseudo-profile).
    name
        The encoder, ``ecapa`` or ``xvector``.

    Raises
    ------
    ParamError
        The encoder cannot be trained further, or there are too few speakers.
    """
    try:
        train, test = split_speakers(segments, np.random.default_rng(settings.seed))
    except ValueError as error:
        raise ParamError(f"--finetune {name}: {error}") from error
    encoder = engines.load("encoder", name)
    if not hasattr(encoder, "network"):
        raise ParamError(f"--finetune {name}: ecapa and xvector can be trained further")
    taught = [read_mono(files[key]) for key in _keys(train)]
    tell(f"{name}: training on {len(taught)} recordings")
    losses = adapt_encoder(encoder, taught, train.table["speaker"].tolist(), recipe)
    tell(f"{name}: loss {losses[0]:.2f} at first, {np.mean(losses[-20:]):.2f} at last")
    heard = np.stack([encoder.embed([read_mono(files[key])])[0] for key in _keys(test)])
    engines.release()  # the network in memory is no longer the published one
    backend = f"{name}, fine-tuned"
    adapted = Segments.build(test.table, {backend: heard.astype(np.float64)})
    rows = [
        _row(adapted, kind, system, profile, backend, train, settings, condition)
        for system in adapted.systems
        for profile in adapted.of(system).profiles
        for kind in ("oaoa", "lazy")
    ]
    return pd.DataFrame(rows)


def _keys(segments: Segments) -> list[tuple[str, str, int]]:
    columns = (segments.table[name] for name in ("recording", "system", "pseudo_profile"))
    return [(str(a), str(b), int(c)) for a, b, c in zip(*columns, strict=True)]


def _row(
    adapted: Segments,
    kind: str,
    system: str,
    profile: int,
    backend: str,
    train: Segments,
    settings: Settings,
    condition: str,
) -> dict[str, Any]:
    def measure(trial_type: str, of: str, number: int) -> dict[str, Any]:
        rng = np.random.default_rng(settings.seed)
        trials = dimensions.build_trials(adapted, trial_type, of, number, backend, rng)
        return dimensions.measure_trials(trials, settings.seed, settings.n_draws, costs=True)

    row, original = measure(kind, system, profile), measure("oo", ORIGINAL, 0)["eer"]
    return {
        "condition": condition, "test_set": ALL, "backend": backend, "system": system,
        "pseudo_profile": profile, "level": "semi_informed",
        "enrolment": "original" if kind == "oaoa" else "anonymised", "attacker": "fine-tuned",
        "n_train_speakers": train.table["speaker"].nunique(), "n_train_rows": len(train.table),
        **row, "eer_original": original, "gap_to_original": row["eer"] - original,
    }  # fmt: skip
