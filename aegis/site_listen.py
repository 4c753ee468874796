"""The listening page: every affected turn of a run, in every condition.

Unit: one affected turn. Sounds and spectrograms lie beside the page as MP3 and PNG,
named by their content, so a second build makes only what changed. Without originals the
page holds surrogates, outcomes and counts (see :mod:`aegis.turn_display`); with them,
recordings whose corpus card says public or synthetic are shown whole.

Function: :func:`write_listening_page`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from aegis import listening
from aegis.audio import Signal
from aegis.listening import Material, TurnView
from aegis.site_pages import raw
from aegis.tables import Run
from aegis.turn_display import shown_conditions, turn_html

_LEGEND = [
    ("planned", "planned replacement"), ("realised", "replacement heard"),
    ("retained", "original still heard"), ("changed", "other recognition difference"),
    ("missing", "not heard"),
]  # fmt: skip


def write_listening_page(run: Run, pages: Path, originals: bool) -> set[str]:
    """Write ``listen.md`` with its sounds; the recordings shown with their original words."""
    media = pages / "files" / "audio"
    media.mkdir(parents=True, exist_ok=True)
    allowed = listening.may_show_originals(run) if originals else set()
    material = listening.load_material(run)
    turns = listening.affected_turns(material)
    parts, kept, last = [_head(len(turns), bool(allowed))], set(), ""
    for turn_id in turns:
        view = listening.view_turn(material, turn_id)
        if view.recording_id != last:
            last = view.recording_id
            parts.append(f"\n## {last} {{#listen-{_slug(last)} .unnumbered}}\n")
        shown = view.recording_id in allowed
        addresses = _media(material, view, shown_conditions(view, shown), media)
        kept |= {Path(address).name for pair in addresses.values() for address in pair}
        parts.append(raw(turn_html(view, addresses, shown)))
    for path in media.iterdir():
        if path.name not in kept:
            path.unlink()
    (pages / "listen.md").write_text("\n".join(parts), encoding="utf-8")
    return allowed


def _head(n_turns: int, originals: bool) -> str:
    said = (
        "Originals are shown because the card of their corpus says that its content is public or"
        " synthetic."
        if originals
        else "Original words and voices are not shown. A condition is played where fresh"
        " recognition finds no original identifier of that turn; that is no proof of removal."
    )
    legend = ", ".join(
        f'<mark class="d-{kind}">{text}</mark>' if kind != "missing"
        else f'<del class="d-{kind}">{text}</del>'
        for kind, text in _LEGEND
    )  # fmt: skip
    colours = f"\n{raw(f'<p>In transcripts: {legend}.</p>')}" if originals else ""
    return f"""# Listening {{#sec-listen .unnumbered}}

The {n_turns} turns in which an identifier was replaced, as they stand in each condition's
reconstruction, with spectrograms (0 to 5 kHz), outcomes of the planned replacements and clinical
facts.
{said}
{colours}"""


def _slug(text: str) -> str:
    return "".join(c if c.isalnum() else "-" for c in text)


def _media(
    material: Material, view: TurnView, conditions: Iterable[str], folder: Path
) -> dict[str, tuple[str, str]]:
    """Condition -> addresses of its MP3 and PNG, made where they are not there yet."""
    sounds = {name: listening.turn_sound(material, view, name) for name in conditions}
    there = {name: samples for name, samples in sounds.items() if samples is not None}
    with ThreadPoolExecutor() as pool:  # the encoders work outside Python's lock
        made = pool.map(lambda samples: _encode(samples, folder), there.values())
        return dict(zip(there, made, strict=True))


def _encode(samples: Signal, folder: Path) -> tuple[str, str]:
    name = hashlib.sha256(samples.tobytes()).hexdigest()[:16]
    sound, image = folder / f"{name}.mp3", folder / f"{name}.png"
    if not sound.exists():
        sound.write_bytes(listening.encode_mp3(samples))
    if not image.exists():
        image.write_bytes(listening.encode_png(listening.spectrogram(samples)))
    return f"files/audio/{sound.name}", f"files/audio/{image.name}"
