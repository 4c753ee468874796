"""How a turn is shown, with and without its original words.

Unit: one :class:`~aegis.listening.TurnView`. With ``originals=False`` only what is
meant to leave the study is shown: surrogates, outcomes, counts, and the sound of those
de-identified conditions in which fresh recognition finds no original of this turn.
Converted turns that hold an identifier say it in another voice, so they count as
originals here.

Functions: :func:`shown_conditions`, :func:`turn_html`, :func:`turn_text`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

from aegis.differences import Piece, as_text, joined
from aegis.listening import FactLine, TurnView

CONDITION_LABELS = {
    "original": "original",
    "converted": "converted only",
    "renderer_a": "renderer A (infill)",
    "renderer_b": "renderer B (whole turn)",
    "redacted": "redacted",
}
_JUDGED = {"source_text": "saved transcript", **CONDITION_LABELS}
_TITLES = {
    "planned": "planned replacement",
    "realised": "replacement heard",
    "retained": "original still heard",
    "changed": "other recognition difference",
    "missing": "not heard",
}
_DEIDENTIFIED = ("renderer_a", "renderer_b", "redacted")


def shown_conditions(view: TurnView, originals: bool) -> list[str]:
    """The conditions whose sound may be played."""
    if originals:
        return list(view.conditions)
    if not view.edits:
        return [name for name in view.conditions if name != "original"]
    absent = [
        name
        for name in _DEIDENTIFIED
        if all(edit.outcomes.get(name, ("", ""))[1] == "absent" for edit in view.edits)
    ]
    return [name for name in view.conditions if name in absent]


def title(view: TurnView) -> str:
    """``Turn 12, S1, 63.4 to 69.8 s``."""
    return f"Turn {view.index}, {view.speaker}, {view.start_s:.1f} to {view.end_s:.1f} s"


def pieces_html(pieces: Sequence[Piece], language: str) -> str:
    """A transcript with its differences marked by colour, underline and a spoken label."""
    parts = []
    for piece in joined(pieces):
        text = escape(piece.text)
        if piece.kind == "same":
            parts.append(text)
            continue
        tag = "del" if piece.kind == "missing" else "mark"
        label = _TITLES[piece.kind]
        parts.append(f'<{tag} class="d-{piece.kind}" title="{label}">{text}</{tag}>')
    return f'<span lang="{escape(language)}">{" ".join(parts)}</span>'


def turn_html(
    view: TurnView, media: Mapping[str, tuple[str, str]], originals: bool, level: int = 3
) -> str:
    """One turn as HTML.

    Parameters
    ----------
    media
        Condition -> addresses of its sound and its spectrogram; conditions that
        :func:`shown_conditions` leaves out are not played even where they are given.
    level
        Of the heading.
    """
    categories = ", ".join(sorted({edit.category for edit in view.edits})) or "no edit"
    parts = [
        f'<section class="turn" id="{escape(view.turn_id)}">',
        f"<h{level}>{escape(title(view))}: {escape(categories)}</h{level}>",
    ]
    if originals:
        parts.append(f'<p class="plan">Plan: {pieces_html(view.plan, view.language)}</p>')
    parts.append('<div class="players">')
    for name in shown_conditions(view, originals):
        if name in media:
            parts.append(_player(view, name, media[name], originals))
    parts.append("</div>")
    parts.append(_edits(view, originals))
    parts.append(_facts(view.facts, originals))
    parts.append("</section>")
    return "\n".join(part for part in parts if part)


def _player(view: TurnView, condition: str, media: tuple[str, str], originals: bool) -> str:
    sound, image = media
    label = CONDITION_LABELS[condition]
    what = escape(f"{label}, {title(view)}")
    heard = ""
    if originals:
        text = pieces_html(view.heard[condition], view.language)
        heard = f'<p class="heard">Heard: {text}</p>'
    return (
        f'<figure class="player"><figcaption>{escape(label)}</figcaption>'
        f'<img src="{escape(image)}" loading="lazy" alt="Spectrogram, {what}">'
        f'<audio controls preload="none" aria-label="{what}" src="{escape(sound)}"></audio>'
        f"{heard}</figure>"
    )


def _edits(view: TurnView, originals: bool) -> str:
    items = []
    for edit in view.edits:
        outcomes = [
            f"{CONDITION_LABELS[name]}: {_outcome(*edit.outcomes[name])}"
            for name in _DEIDENTIFIED
            if name in edit.outcomes
        ]
        source = f"{escape(edit.original)} → " if originals else ""
        shown = f"{source}<mark class='d-planned'>{escape(edit.replacement)}</mark>"
        items.append(f"<li>{escape(edit.category)}: {shown}; {'; '.join(outcomes)}</li>")
    if not items:
        return ""
    return f'<p class="list-title">Replacements</p><ul class="edits">{"".join(items)}</ul>'


def _outcome(replacement: str, original: str) -> str:
    said = {"not_applicable": "", "not_realised": "not realised, "}
    return f"{said.get(replacement, replacement + ', ')}original {original}"


def fact_counts(facts: Sequence[FactLine]) -> dict[str, dict[str, int]]:
    """Condition -> label -> facts; a label that was not observed counts as ``unobserved``."""
    counts: dict[str, dict[str, int]] = {}
    for fact in facts:
        for condition, label in fact.labels.items():
            own = counts.setdefault(condition, {})
            own[label or "unobserved"] = own.get(label or "unobserved", 0) + 1
    return counts


def _facts(facts: Sequence[FactLine], originals: bool) -> str:
    if not facts:
        return ""
    if not originals:
        counted = fact_counts(facts)
        counts = [
            f"<li>{words}: "
            + ", ".join(f"{n} {label}" for label, n in sorted(counted[name].items()))
            + "</li>"
            for name, words in _JUDGED.items()
            if name in counted
        ]
        one = len(facts) == 1
        said = f"<p>{len(facts)} clinical fact{'' if one else 's'} in this turn.</p>"
        return f'{said}<ul class="facts">{"".join(counts)}</ul>'
    items = []
    for fact in facts:
        labels = [
            f'<span class="v-{fact.labels[name] or "unobserved"}">{label}:'
            f" {fact.labels[name] or 'unobserved'}</span>"
            for name, label in _JUDGED.items()
            if name in fact.labels
        ]
        said = f"{escape(fact.text)} ({escape(fact.importance)})"
        items.append(f"<li>{said}<br>{'; '.join(labels)}</li>")
    return f'<p class="list-title">Clinical facts</p><ul class="facts">{"".join(items)}</ul>'


def turn_text(view: TurnView, originals: bool) -> str:
    """One turn for a plain terminal; marks as in :func:`aegis.differences.as_text`."""
    lines = [title(view)]
    if originals:
        lines.append(f"  plan       {as_text(view.plan)}")
        lines += [f"  {name:<10} {as_text(view.heard[name])}" for name in view.conditions]
    for edit in view.edits:
        source = f"{edit.original} -> " if originals else ""
        shown = [
            f"{name}: {_outcome(*edit.outcomes[name])}"
            for name in _DEIDENTIFIED
            if name in edit.outcomes
        ]
        lines.append(f"  {edit.category}: {source}{edit.replacement}; {'; '.join(shown)}")
    for name, own in fact_counts(view.facts).items():
        counted = ", ".join(f"{n} {label}" for label, n in sorted(own.items()))
        lines.append(f"  facts, {name}: {counted}")
    return "\n".join(lines)
