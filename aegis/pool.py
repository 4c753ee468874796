"""The reference pool: its declaration, and what makes a unit eligible.

Unit: one reference voice, at least 4.5 s of speech at 16 kHz after trimming. A pool is
declared in one of two forms. *Synthesised* (``data_manifests/pool.yaml``): base voices in
declared variants. *Recorded* (OpenSwara-like): a CSV table, or a YAML mapping with
``units``, one row a unit with ``voice_id path sha256 language`` and, where known,
``accent native_english gender_presentation child_like traits quality licence provenance``;
paths are relative to the manifest. What is not stated stays unknown and is not guessed: of the
paper's snapshot of OpenSwara, whose voices state no uniform origin, ``provenance`` says just that.

Functions: :func:`read_pool`, :func:`measure_quality`, :func:`judge_unit`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from aegis.audio import SAMPLE_RATE_HZ, Signal, rms_db
from aegis.errors import ManifestError
from aegis.fields import check_known, check_needed, read_csv, read_yaml, repeated

RATIOS = "f0_ratio formant_ratio rate"
_RECORDED = (
    "voice_id path sha256 language accent native_english gender_presentation child_like traits"
    " quality licence provenance"
)
_ID = re.compile(r"[A-Za-z0-9._-]+")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Unit:
    """One declared unit; ``variant`` holds ratios to the base voice, None = not known."""

    voice_id: str
    language: str
    base_voice: str = "none"
    variant: tuple[tuple[str, float], ...] = ()
    accent: str = "unknown"
    native: bool | None = None
    native_english: bool | None = None
    gender_presentation: str = "unknown"
    child_like: bool = False
    traits: str = ""
    quality: str = "unknown"
    licence: str = "unknown"
    provenance: str = "not stated"
    path: str | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class PoolManifest:
    """A pool: ``synthesiser`` is None for recorded units."""

    name: str
    units: tuple[Unit, ...]
    synthesiser: str | None
    texts: Mapping[str, str]
    min_duration_s: float
    child_f0_hz: float
    child_formant_ratio: float
    folder: Path


def read_pool(path: Path, reserved: frozenset[str] = frozenset()) -> PoolManifest:
    """Read a pool's declaration.

    Parameters
    ----------
    reserved
        ``synthesiser:voice`` names that the corpus speaks; none may be in the pool.

    Raises
    ------
    ManifestError
        Unknown or missing keys, repeated ids, a ratio out of [0.5, 2], a reserved voice.
    """
    if path.suffix == ".csv":
        header, *rows = read_csv(path) or [[]]
        ragged = [line for line, row in enumerate(rows, 2) if row and len(row) != len(header)]
        if ragged:
            raise ManifestError(f"{path.name}, line {ragged[0]}: {len(header)} fields expected")
        units_given = [dict(zip(header, row, strict=True)) for row in rows if row]
        content: dict[str, Any] = {"name": path.stem, "units": units_given}
    else:
        content = read_yaml(path)
    recorded = "units" in content
    units = _recorded(content, path) if recorded else _synthesised(content, path)
    _refuse_repeats([unit.voice_id for unit in units], path.name)
    synthesiser = None if recorded else str(content["synthesiser"])
    used = sorted({u.base_voice for u in units if f"{synthesiser}:{u.base_voice}" in reserved})
    if used:
        raise ManifestError(f"{path.name}: voices of the corpus are in the pool: {used[:3]}")
    child = content.get("child_like", {})
    return PoolManifest(
        name=str(content.get("name", path.stem)),
        units=tuple(sorted(units, key=lambda unit: unit.voice_id)),
        synthesiser=synthesiser,
        texts=content.get("texts", {}),
        min_duration_s=float(content.get("min_duration_s", 4.5)),
        child_f0_hz=float(child.get("f0_median_hz", np.inf)),
        child_formant_ratio=float(child.get("formant_ratio", np.inf)),
        folder=path.parent,
    )


def _synthesised(content: Mapping[str, Any], path: Path) -> list[Unit]:
    keys = "name synthesiser licence source min_duration_s texts variants child_like bases"
    check_known(content, keys, path.name)
    check_needed(dict(content), "synthesiser licence texts variants bases", path.name)
    units = []
    for base in content["bases"]:
        what = f"{path.name}: base {base.get('voice')!r}"
        check_known(base, "voice language accent native gender_presentation quality", what)
        check_needed(base, "voice language accent native gender_presentation", what)
        if base["language"] not in content["texts"]:
            raise ManifestError(f"{what}: no text in language {base['language']!r}")
        for name, ratios in content["variants"].items():
            variant = _variant(ratios, f"{path.name}: variant {name!r}")
            unit = _variant_unit(base, name, variant, str(content["licence"]))
            origin = f"synthesised here by {content['synthesiser']}"
            units.append(replace(unit, provenance=origin))
    return units


def _variant_unit(
    base: Mapping[str, Any], name: str, variant: tuple[tuple[str, float], ...], licence: str
) -> Unit:
    native, language = bool(base["native"]), str(base["language"])
    traits = {"native": "yes" if native else "no", "variant": name} | dict(variant)
    return Unit(
        voice_id=_checked_id(f"{language}.{base['voice']}.{name}", "pool"),
        language=language,
        base_voice=str(base["voice"]),
        variant=variant,
        accent=str(base["accent"]),
        native=native,
        native_english=native if language == "en" else None,
        gender_presentation=str(base["gender_presentation"]),
        traits=";".join(f"{key}={value}" for key, value in traits.items()),
        quality=str(base.get("quality", "unknown")),
        licence=licence,
    )


def _variant(ratios: Mapping[str, float] | None, what: str) -> tuple[tuple[str, float], ...]:
    ratios = ratios or {}
    check_known(ratios, RATIOS, what)
    wrong = [key for key, value in ratios.items() if not 0.5 <= float(value) <= 2.0]
    if wrong:
        raise ManifestError(f"{what}: {', '.join(wrong)} outside [0.5, 2]")
    return tuple((key, float(ratios[key])) for key in RATIOS.split() if key in ratios)


def _recorded(content: Mapping[str, Any], path: Path) -> list[Unit]:
    check_known(content, "name licence source min_duration_s provenance units", path.name)
    units = []
    for row in content["units"]:
        what = f"{path.name}: unit {row.get('voice_id')!r}"
        check_known(row, _RECORDED, what)
        check_needed(row, "voice_id path sha256 language", what)
        if not _SHA256.fullmatch(str(row["sha256"])):
            raise ManifestError(f"{what}: sha256 must be 64 hexadecimal digits")
        child = _flag(row.get("child_like"), what)
        units.append(
            Unit(
                voice_id=_checked_id(str(row["voice_id"]), what),
                language=str(row["language"]),
                accent=_word(row.get("accent")),
                native_english=_flag(row.get("native_english"), what),
                gender_presentation=_word(row.get("gender_presentation")),
                child_like=bool(child),
                traits=str(row.get("traits") or ""),
                quality=_word(row.get("quality")),
                licence=str(row.get("licence") or content.get("licence", "unknown")),
                provenance=str(row.get("provenance") or content.get("provenance", "not stated")),
                path=str(row["path"]),
                sha256=str(row["sha256"]),
            )
        )
    return units


def _word(value: object) -> str:
    return "unknown" if value is None or str(value).strip() == "" else str(value).strip()


def _flag(value: object, what: str) -> bool | None:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    text = _word(value).lower()
    if text in ("unknown", "na"):
        return None
    if text not in words:
        raise ManifestError(f"{what}: {value!r} is neither true nor false nor unknown")
    return words[text]


def _checked_id(voice_id: str, what: str) -> str:
    if not _ID.fullmatch(voice_id):
        raise ManifestError(f"{what}: voice_id {voice_id!r} may hold A-Z a-z 0-9 . _ - only")
    return voice_id


def _refuse_repeats(ids: Sequence[str], name: str) -> None:
    twice = repeated(ids)
    if twice:
        raise ManifestError(f"{name}: voice_id given twice: {', '.join(twice[:3])}")


# --- quality --------------------------------------------------------------------------------


def trim(samples: Signal, below_peak_db: float = 40.0) -> Signal:
    """Take silence off both ends (20-ms frames more than 40 dB below the loudest)."""
    levels = frame_levels_db(samples)
    if not levels.size:
        return samples
    loud = np.flatnonzero(levels >= levels.max() - below_peak_db)
    return samples[loud[0] * 320 : (loud[-1] + 1) * 320]


def frame_levels_db(samples: Signal) -> NDArray[np.float64]:
    """Level of each whole 20-ms frame in dB, not below -120."""
    frames = samples[: samples.size // 320 * 320].reshape(-1, 320).astype(np.float64)
    levels: NDArray[np.float64] = 10 * np.log10(np.mean(frames**2, axis=1) + 1e-12)
    return levels


def measure_quality(samples: Signal) -> dict[str, float]:
    """Duration, loudness, clipped share and a signal-to-noise estimate of a trimmed unit.

    ``snr_db`` is the distance between the 95th and 5th percentile of frame levels, at most
    60: pauses stand for the noise.
    """
    levels = frame_levels_db(samples)
    spread = float(np.percentile(levels, 95) - np.percentile(levels, 5)) if levels.size else 0.0
    clipped = float(np.mean(np.abs(samples) >= 0.999)) if samples.size else 0.0
    return {
        "duration_s": samples.size / SAMPLE_RATE_HZ,
        "level_db": max(rms_db(samples), -120.0),
        "clipped_share": clipped,
        "snr_db": min(spread, 60.0),
    }


def judge_unit(
    quality: Mapping[str, float],
    f0_median_hz: float | None,
    child_like: bool,
    min_duration_s: float = 4.5,
) -> str | None:
    """Why a unit may not be used (first reason that applies), or None."""
    if quality["duration_s"] < min_duration_s:
        return f"shorter than {min_duration_s} s ({quality['duration_s']:.2f} s)"
    if quality["level_db"] < -45.0:
        return f"too quiet ({quality['level_db']:.0f} dBFS)"
    if quality["clipped_share"] > 0.001:
        return f"clipped ({100 * quality['clipped_share']:.2f} % of samples)"
    if quality["snr_db"] < 15.0:
        return f"noisy (level spread {quality['snr_db']:.0f} dB)"
    if f0_median_hz is None:
        return "no voiced speech found"
    return "child-like" if child_like else None
