"""Recordings of another system: which files belong together, and whose they are.

Unit: a row of META.csv, one recording: ``path`` (below the folders, with or without its
extension, or the utterance id of a Kaldi folder) and ``speaker``; ``sex, age, accent,
language, session, pseudo_profile, text, test_set`` where known. A folder is a plain one
(any depth) or a VoicePrivacy/Kaldi data folder (``wav.scp``, ``utt2spk``, and
``spk2gender``, ``text`` where there). No row and no file is dropped: each gets a fate.

Functions: :func:`read_meta`, :func:`index_folder`, :func:`match_files`,
:func:`read_embeddings`, :func:`read_score_file`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from aegis.errors import ManifestError
from aegis.ingest import SUFFIXES
from aegis.segments import OPTIONAL
from aegis.stats import Floats

META_COLUMNS = ("path", "speaker", *OPTIONAL, "pseudo_profile")
SETS = ("original", "anonymised", "anonymised2")
AGES = {"young": "Young", "adult": "Adult", "senior": "Senior"}
SEXES = {"f": "female", "m": "male", "female": "female", "male": "male"}


def read_meta(path: Path | None, original: Path | None) -> pd.DataFrame:
    """META.csv, or what a Kaldi folder of originals says when there is no file.

    Ages in years become Young (under 25), Adult (under 55) and Senior.

    Raises
    ------
    ManifestError
        A required column is absent or empty, a path repeats, or there is nothing to read.
    """
    if path is None:
        if original is None or not (original / "utt2spk").exists():
            raise ManifestError("no META.csv and no utt2spk: nobody says who speaks")
        table = _kaldi_meta(original)
    else:
        table = _read_csv(path)
    for name in ("path", "speaker"):
        if name not in table:
            raise ManifestError(f"META: no column {name!r}; it has {', '.join(table.columns)}")
        if table[name].isna().any():
            lines = (np.flatnonzero(table[name].isna()) + 2)[:3].tolist()
            raise ManifestError(f"META: {name} is empty in lines {lines}")
    if table["path"].duplicated().any():
        raise ManifestError(f"META: {table['path'][table['path'].duplicated()].iloc[0]!r} repeats")
    full = table.reindex(columns=list(META_COLUMNS)).astype(object)
    full["sex"] = pd.Series([_known(SEXES, v) for v in full["sex"]], dtype=object)
    full["age"] = pd.Series([_age_group(v) for v in full["age"]], dtype=object)
    return full.where(full.notna(), None)


def _read_csv(path: Path) -> pd.DataFrame:
    try:
        return pd.read_csv(path, dtype=str, encoding="utf-8-sig")
    except (OSError, ValueError, pd.errors.ParserError) as error:
        raise ManifestError(f"{path.name}: cannot be read ({error})") from error


def _known(names: Mapping[str, str], value: Any) -> Any:
    return None if pd.isna(value) else names.get(str(value).strip().lower(), str(value).strip())


def _age_group(value: Any) -> Any:
    if pd.isna(value):
        return None
    try:
        years = float(value)
    except ValueError:
        return _known(AGES, value)
    return "Young" if years < 25 else "Adult" if years < 55 else "Senior"


def _kaldi_meta(folder: Path) -> pd.DataFrame:
    speakers, texts = _kaldi_map(folder / "utt2spk"), _kaldi_map(folder / "text")
    sexes = _kaldi_map(folder / "spk2gender")
    return pd.DataFrame([
        {
            "path": name, "speaker": speaker, "sex": sexes.get(speaker),
            "text": texts.get(name),
        }
        for name, speaker in speakers.items()
    ])  # fmt: skip


def _kaldi_map(path: Path) -> dict[str, str]:
    """``key value`` lines; an absent file is empty."""
    if not path.exists():
        return {}
    lines = path.read_text("utf-8").splitlines()
    pairs = [line.split(maxsplit=1) for line in lines if line.strip()]
    return {pair[0]: pair[1].strip() if len(pair) > 1 else "" for pair in pairs}


def index_folder(folder: Path) -> dict[str, Path | str]:
    """Audio by name: a path, or the reason why an entry is none.

    A file of a plain folder has two names, its path below the folder with and without its
    extension; two files whose names differ in the extension only keep the longer name.

    Raises
    ------
    ManifestError
        No such folder, or no audio in it.
    """
    if not folder.is_dir():
        raise ManifestError(f"{folder.name}: no such folder")
    found: dict[str, Path | str] = {}
    if (folder / "wav.scp").exists():
        for name, place in _kaldi_map(folder / "wav.scp").items():
            found[name] = _kaldi_audio(place, folder)
    else:
        files = sorted(p for p in folder.rglob("*") if p.suffix.lower() in SUFFIXES)
        stems = [p.relative_to(folder).with_suffix("").as_posix() for p in files]
        for path, stem in zip(files, stems, strict=True):
            found[path.relative_to(folder).as_posix()] = path
            if stems.count(stem) == 1:
                found[stem] = path
    if not found:
        raise ManifestError(f"{folder.name}: no audio files in it")
    return found


def _kaldi_audio(place: str, folder: Path) -> Path | str:
    if place.endswith("|"):
        return "wav.scp names a command, not a file; write the audio out first"
    for path in (Path(place), folder / place, folder.parent / place):
        if path.is_file():
            return path
    return "wav.scp names a file that is not there"


def match_files(meta: pd.DataFrame, folders: Mapping[str, Path]) -> pd.DataFrame:
    """One row a META row and folder, and one a file that no META row names.

    Columns: set, path, speaker, file, status (``ok``, ``missing``, ``not_listed``), reason.
    """
    rows: list[dict[str, Any]] = []
    for name, folder in folders.items():
        index = index_folder(folder)
        used: set[str] = set()
        for item in meta.to_dict("records"):
            found = _find(index, str(item["path"]))
            row = {"set": name, "path": item["path"], "speaker": item["speaker"], "file": None}
            if isinstance(found, Path):
                used.add(str(found))
                rows.append(row | {"file": str(found), "status": "ok", "reason": None})
            else:
                why = found or "no such file"
                rows.append(row | {"status": "missing", "reason": why})
        others = {str(p): key for key, p in index.items() if isinstance(p, Path)}
        rows += [
            {
                "set": name, "path": key, "speaker": None, "file": place, "status": "not_listed",
                "reason": "META has no such path",
            }
            for place, key in sorted(others.items()) if place not in used
        ]  # fmt: skip
    return pd.DataFrame(rows, columns=["set", "path", "speaker", "file", "status", "reason"])


def _find(index: Mapping[str, Path | str], path: str) -> Path | str | None:
    """By its whole name, or without the extension (another system may write another format)."""
    plain = Path(path)
    bare = plain.with_suffix("").as_posix() if plain.suffix.lower() in SUFFIXES else path
    return index.get(plain.as_posix(), index.get(bare))


def read_embeddings(path: Path, meta: pd.DataFrame) -> tuple[pd.DataFrame, dict[str, Floats]]:
    """Embeddings that somebody else made: rows of (set, path) and vectors by backend.

    The NPZ holds ``path`` and ``set`` (names of :data:`SETS`), shape (n,), and any number
    of two-dimensional arrays, one a backend. Rows that META lacks are ``not_listed``.

    Raises
    ------
    ManifestError
        An array is absent, of another length, not finite, or a set is unknown.
    """
    try:
        with np.load(path, allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
    except (OSError, ValueError) as error:
        raise ManifestError(f"{path.name}: cannot be read ({error})") from error
    absent = [name for name in ("path", "set") if name not in arrays]
    if absent:
        raise ManifestError(f"{path.name}: no array {', '.join(absent)}")
    paths, sets = (arrays.pop(name).astype(str) for name in ("path", "set"))
    unknown = sorted(set(sets) - set(SETS))
    if unknown:
        raise ManifestError(f"{path.name}: sets {unknown}; known: {', '.join(SETS)}")
    vectors = {name: rows.astype(np.float64) for name, rows in arrays.items() if rows.ndim == 2}
    wrong = [n for n, rows in vectors.items() if len(rows) != len(paths)]
    if not vectors or wrong:
        raise ManifestError(f"{path.name}: {len(paths)} paths, but not in arrays {wrong}")
    known = {str(p): s for p, s in zip(meta["path"], meta["speaker"], strict=True)}
    listed = [p in known for p in paths]
    table = pd.DataFrame({
        "set": sets, "path": paths, "speaker": [known.get(p) for p in paths],
        "status": np.where(listed, "ok", "not_listed"),
        "reason": [None if fine else "META has no such path" for fine in listed],
    })  # fmt: skip
    return table, vectors


TARGET_NAMES = {
    "target": True, "true": True, "1": True, "1.0": True, "nontarget": False, "false": False,
    "non-target": False, "0": False, "0.0": False,
}  # fmt: skip


def read_score_file(path: Path) -> pd.DataFrame:
    """Scores that somebody else computed: columns score and target (1/0, target/nontarget);
    system, trial_type, backend, enrol, test where given.

    Raises
    ------
    ManifestError
        A column is absent, or a value cannot be understood.
    """
    table = _read_csv(path)
    absent = [name for name in ("score", "target") if name not in table]
    if absent:
        raise ManifestError(f"{path.name}: no column {', '.join(absent)}")
    target = table["target"].str.strip().str.lower().map(TARGET_NAMES)
    score = pd.to_numeric(table["score"], errors="coerce")
    bad = np.flatnonzero((target.isna() | score.isna()).to_numpy())
    if len(bad):
        raise ManifestError(
            f"{path.name}: {len(bad)} lines without a number or a label, e.g. line {bad[0] + 2}"
        )
    names = {"system": "given", "trial_type": "given", "backend": "given", "enrol": None,
             "test": None}  # fmt: skip
    for name, default in names.items():
        if name not in table:
            table[name] = default
    return table.assign(score=score.astype(float), target=target.astype(bool))
