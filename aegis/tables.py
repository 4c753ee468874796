"""The study's tables: what each row is, its key, and who may see it.

A run is a folder ``runs/<run>/``. Public tables lie in ``tables/``, secret ones
in ``secret/tables/`` (mode 0700): they hold original words, file names or the
mappings rho and pi and never reach the site, a receipt or a notebook's output.
Every table has one owner among the notebooks (see ``pipeline.STAGES``), a unit,
a key and a sort order; missing values are NA with a ``status`` and a ``reason``,
never 0 and never a dropped row.

Functions: :func:`open_run`, :func:`content_id`, :func:`check_table`.
"""

from __future__ import annotations

import hashlib
import io
import os
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pyarrow as pa

from aegis.audio import write_bytes
from aegis.errors import TableError

PROJECT = Path(__file__).resolve().parent.parent
CONDITIONS = ("original", "converted", "renderer_a", "renderer_b", "redacted")
STATUSES = ("ok", "failed", "excluded", "not_applicable", "unknown")

_DTYPES = {"str": "string", "int": "Int64", "float": "Float64", "bool": "boolean"}
_STORED = {
    "str": pa.large_string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_(),
    "list": pa.list_(pa.float64()),
}  # fmt: skip


@dataclass(frozen=True)
class Schema:
    """One table: ``columns`` maps a name to ``str|int|float|bool|list``, ``?`` allows NA.

    A ``list`` column holds numbers of one length a row (an embedding). ``ordered`` names
    pairs of columns whose first value must not exceed the second.
    """

    name: str
    unit: str
    visibility: str
    key: tuple[str, ...]
    columns: dict[str, str]
    ordered: tuple[tuple[str, str], ...] = ()


def _columns(text: str) -> dict[str, str]:
    """Parse ``"a:str b:float?"``."""
    return dict(part.split(":") for part in text.split())


def _schema(
    name: str, unit: str, visibility: str, key: str, columns: str, ordered: str = ""
) -> Schema:
    pairs = tuple((a, b) for a, b in (part.split("<=") for part in ordered.split()))
    return Schema(name, unit, visibility, tuple(key.split()), _columns(columns), pairs)


_FATE = " status:str reason:str?"
_MEASURED = (
    " measure:str condition:str numerator:float? denominator:float? unknown:int value:float?"
)
_EFFECT = (
    " contrast_id:str endpoint:str condition_a:str condition_b:str estimate:float? ci_low:float?"
    " ci_high:float? detectable:float? equal_conversation:float? n_items:int n_clusters:int"
    " p:float? p_holm:float? family:str?"
)
_PLACE = "condition test_set backend system pseudo_profile"
_PLACED = "condition:str test_set:str backend:str system:str pseudo_profile:int"
_EER = "eer:float? ci_low:float? ci_high:float? n_target:int n_nontarget:int n_speakers:int"
_COSTS = (
    "cllr:float? min_cllr:float? d_sys:float? zebra_bits:float? zebra_log10:float? zebra_tag:str?"
)
_TAIL = (
    "fpr:float eer:float? tpr:float? ci_low:float? ci_high:float? realised_fpr:float? eps_hat:float?"
    " eps_lower:float? n_tail:float? n_speakers_hit:float? n_splits:int? n_target:int?"
    " n_nontarget:int? n_speakers:int?"
)

# fmt: off
SCHEMAS: dict[str, Schema] = {
    schema.name: schema
    for schema in [
        # 00_corpora
        _schema(
            "recordings", "one recording (= conversation = cluster)", "public", "recording_id",
            "recording_id:str dataset:str language:str? layout:str n_channels:int? source_rate_hz:int?"
            " duration_s:float? n_samples:int? gain_db:float? sha256:str? n_speakers_declared:int?" + _FATE,
        ),
        _schema("file_map", "one input file", "secret", "recording_id file",
                "recording_id:str file:str source_sha256:str? role:str"),
        _schema("gold_turns", "one scripted turn", "secret", "recording_id turn_index",
                "recording_id:str turn_index:int speaker:str role:str voice:str start_s:float end_s:float text:str"
                " language:str", "start_s<=end_s"),
        _schema("gold_words", "one spoken word", "secret", "recording_id word_index",
                "recording_id:str word_index:int turn_index:int speaker:str text:str start_s:float? end_s:float?"),
        _schema("gold_speech", "a stretch of scripted speech without a pause over 0.2 s", "secret",
                "recording_id speaker start_s",
                "recording_id:str speaker:str turn_index:int start_s:float end_s:float", "start_s<=end_s"),
        _schema("gold_mentions", "one identifier mention in a scripted turn", "secret",
                "recording_id turn_index char_start",
                "recording_id:str turn_index:int char_start:int char_end:int text:str category:str entity:str",
                "char_start<=char_end"),
        _schema("gold_facts", "one scripted clinical fact", "secret", "recording_id fact_index",
                "recording_id:str fact_index:int turn_index:int text:str evidence:str importance:str polarity:str"
                " temporality:str? modifiers:str?"),
        _schema("gold_actions", "one scripted action", "secret", "recording_id action_index",
                "recording_id:str action_index:int action_id:str turn_index:int actor:str action:str state:str"
                " timing:str plan:bool evidence:str"),
        _schema("gold_chronology", "one scripted order, revision or final state", "secret",
                "recording_id relation_index",
                "recording_id:str relation_index:int turn_index:int relation:str first:str second:str evidence:str"),
        # 01_transcribe
        _schema("words", "one recognised word", "secret", "recording_id word_index",
                "recording_id:str word_index:int turn_id:str? speaker:str? channel:int start_s:float? end_s:float?"
                " text:str probability:float? timed:bool flagged:bool"),
        _schema("turns", "one turn: one speaker, [start, end)", "secret", "turn_id",
                "turn_id:str recording_id:str turn_index:int profile_id:str speaker:str channel:int start_s:float"
                " end_s:float text:str language:str n_words:int flagged:bool" + _FATE, "start_s<=end_s"),
        _schema("turn_times", "one turn, without its words", "public", "turn_id",
                "turn_id:str recording_id:str turn_index:int profile_id:str speaker:str start_s:float end_s:float"
                " n_words:int flagged:bool", "start_s<=end_s"),
        _schema("screening", "one recording: what was heard and what was not", "public", "recording_id",
                "recording_id:str language:str? language_probability:float? n_speakers:int? n_words:int n_turns:int"
                " n_flagged:int n_untimed:int speech_s:float? covered_s:float? uncovered_s:float? overlap_s:float?"
                " n_speakers_found:int? asr:str diarizer:str" + _FATE),
        _schema("diarization", "a stretch of one speaker's speech as the diarizer hears it; mode used or automatic",
                "public", "recording_id mode segment_index",
                "recording_id:str mode:str segment_index:int speaker:str start_s:float end_s:float", "start_s<=end_s"),
        # 02_profiles
        _schema("profiles", "one conversation-speaker profile", "public", "profile_id",
                "profile_id:str recording_id:str speaker:str language:str? n_turns:int speech_s:float n_windows:int"
                " f0_median_hz:float?" + _FATE),
        _schema("profile_embeddings", "one profile and backend", "secret", "profile_id backend",
                "profile_id:str backend:str vector:list"),
        _schema("voices", "one unit of the reference pool", "public", "voice_id",
                "voice_id:str base_voice:str synthesiser:str? language:str accent:str native_english:bool?"
                " gender_presentation:str child_like:bool traits:str? duration_s:float? snr_db:float?"
                " f0_median_hz:float? sha256:str? licence:str provenance:str eligible:bool" + _FATE),
        _schema("voice_embeddings", "one pool unit and backend", "secret", "voice_id backend",
                "voice_id:str backend:str vector:list"),
        _schema("backend_distances", "one speaker-embedding backend on this corpus and pool", "public", "backend",
                "backend:str n_pairs:int share_over_070:float? share_over_065:float? median_distance:float?"
                " cohort:str n_cohort:int"),
        # 03_assign_voices
        _schema("assignments", "one profile's pseudo-voice (pi)", "secret", "profile_id pseudo_profile",
                "profile_id:str pseudo_profile:int recording_id:str speaker:str voice_id:str? distance:float?"
                " score:float? rank:int? n_candidates:int n_eligible:int" + _FATE),
        _schema("assignment_summary", "one recording's assignment", "public", "recording_id pseudo_profile",
                "recording_id:str pseudo_profile:int n_profiles:int n_assigned:int n_nodes:int"
                " min_source_distance:float? min_target_distance:float?" + _FATE),
        # 04_convert
        _schema("converted", "one converted turn", "public", "turn_id",
                "turn_id:str recording_id:str profile_id:str converter:str file:str? sha256:str? n_samples:int?"
                " gain_db:float?" + _FATE),
        _schema("converted_more", "one turn converted towards a further pseudo-profile", "public",
                "turn_id pseudo_profile",
                "turn_id:str pseudo_profile:int recording_id:str profile_id:str converter:str file:str? sha256:str?"
                " n_samples:int? gain_db:float?" + _FATE),
        # 05_plan_edits
        _schema("mentions", "one detected identifier mention", "secret", "mention_id",
                "mention_id:str recording_id:str turn_id:str entity_id:str? category:str char_start:int? char_end:int?"
                " text:str canonical:str source:str score:float? start_s:float? end_s:float? located:bool timed:bool"),
        _schema("substitutions", "one entity's replacement (rho)", "secret", "entity_id",
                "entity_id:str recording_id:str category:str language:str original:str replacement:str?"
                " n_mentions:int" + _FATE),
        _schema("edits", "one edit intention: one mention to replace", "secret", "intention_id",
                "intention_id:str recording_id:str turn_id:str mention_id:str entity_id:str category:str char_start:int"
                " char_end:int original:str replacement:str start_s:float? end_s:float?" + _FATE),
        _schema("regions", "one affected turn with all its edits composed", "secret", "region_id",
                "region_id:str recording_id:str turn_id:str n_edits:int source_text:str target_text:str" + _FATE),
        _schema("plans", "one recording that was screened for identifiers", "public", "recording_id",
                "recording_id:str n_turns:int n_mentions:int n_edits:int" + _FATE),
        _schema("plan_summary", "one recording and identifier category", "public", "recording_id category",
                "recording_id:str category:str n_mentions:int n_entities:int n_edits:int n_unlocated:int n_untimed:int"
                " n_refused:int"),
        # 06_render_edits
        _schema("rendered", "one rendering of an intention (focused) or region (composed)", "public",
                "item_id renderer",
                "item_id:str kind:str renderer:str recording_id:str turn_id:str n_edits:int file:str? sha256:str?"
                " n_samples:int? gain_db:float?" + _FATE),
        # 07_stitch
        _schema("reconstructions", "one recording in one condition", "public", "recording_id condition",
                "recording_id:str condition:str file:str? sha256:str? n_samples:int? duration_s:float? n_segments:int"
                " n_rendered:int n_retained:int n_failed:int clipped_s:float inserted_s:float? replay_max_steps:float?"
                " gain_db:float?" + _FATE),
        _schema("timeline", "one segment of a reconstruction", "public", "recording_id condition segment_index",
                "recording_id:str condition:str segment_index:int kind:str turn_id:str? profile_id:str? source:str"
                " file:str? file_start:int? source_start:int source_end:int out_start:int out_end:int channel:int",
                "source_start<=source_end out_start<=out_end"),
        # 09_retranscribe
        _schema("transcripts", "fresh ASR of one recording or rendered intention in one condition", "secret",
                "item_id condition",
                "item_id:str kind:str recording_id:str condition:str text:str? language:str? n_words:int?"
                " flagged:bool?" + _FATE),
        _schema("turn_transcripts", "fresh ASR of one turn's place in a reconstruction", "secret",
                "turn_id condition",
                "turn_id:str condition:str recording_id:str profile_id:str text:str out_start_s:float out_end_s:float"),
        _schema("lexical_matches", "literal search for one intention in one condition", "secret",
                "intention_id condition scope",
                "intention_id:str condition:str scope:str recording_id:str category:str replacement_status:str"
                " original_status:str planned_text_holds_original:bool replacement_evidence:str?"
                " original_evidence:str?" + _FATE),
        _schema("transcript_scores", "word errors of one recording, condition and reference", "public",
                "recording_id condition reference",
                "recording_id:str condition:str reference:str n_reference:int substitutions:int deletions:int"
                " insertions:int" + _FATE),
        # 12_linkage
        _schema("eligibility", "one profile in one condition and region kind", "public",
                "profile_id condition region_kind backend",
                "profile_id:str recording_id:str condition:str region_kind:str backend:str usable_s:float n_windows:int"
                + _FATE),
        _schema("trials", "one verification trial", "public",
                "protocol condition region_kind backend enrol test",
                "protocol:str condition:str region_kind:str backend:str enrol:str test:str recording_id:str target:bool"
                " score:float"),
        _schema("linkage", "one equal error rate", "public", "protocol condition region_kind backend orientation",
                "protocol:str condition:str region_kind:str backend:str orientation:str eer:float? ci_low:float?"
                " ci_high:float? n_target:int n_nontarget:int n_clusters:int n_draws:int n_dropped:int" + _FATE),
        # 08_extract_facts
        _schema("facts", "one clinical fact (CAP) of the frozen inventory", "secret", "fact_id",
                "fact_id:str recording_id:str fact_index:int turn_id:str turn_index:int question_turn_id:str?"
                " language:str role:str text:str evidence:str importance:str polarity:str temporality:str"
                " certainty:str actor:str modifiers:str action_id:str?"),
        _schema("actions", "one clinical action: who does what, how far it is", "secret", "action_id",
                "action_id:str recording_id:str turn_id:str turn_index:int actor:str action:str state:str timing:str?"
                " plan:bool evidence:str"),
        _schema("chronology", "one temporal relation, revision or final state", "secret", "relation_id",
                "relation_id:str recording_id:str turn_id:str turn_index:int relation:str first:str second:str"
                " evidence:str"),
        _schema("inventory_summary", "one recording's frozen inventory", "public", "recording_id",
                "recording_id:str language:str? extractor:str n_facts:int n_critical:int n_major:int n_minor:int"
                " n_negated:int n_actions:int n_relations:int inventory_sha256:str?" + _FATE),
        # 10_judge_facts
        _schema("fact_verdicts", "one fact judged in one condition; label is absent where it is not observed",
                "public", "fact_id condition judge order",
                "fact_id:str condition:str judge:str order:str recording_id:str importance:str polarity:str"
                " label:str? attempts:int prompt_sha256:str? request_sha256:str? reply_sha256:str?" + _FATE),
        _schema("endpoint_verdicts", "one action, role, relation or final state judged, an unsupported addition, or a"
                " conversation-level endpoint", "public", "item_id kind condition judge order",
                "item_id:str kind:str condition:str judge:str order:str recording_id:str label:str? n_items:int"
                + _FATE),
        _schema("verdict_evidence", "literal evidence behind a verdict of 10_judge_facts", "secret",
                "item_id kind condition judge order",
                "item_id:str kind:str condition:str judge:str order:str evidence:str? note:str?"),
        # 11_judge_edits
        _schema("edit_verdicts", "one focused intention judged in one renderer", "public",
                "intention_id condition judge order",
                "intention_id:str condition:str judge:str order:str recording_id:str category:str"
                " source_present:str? replacement_status:str? original_status:str? planned_text_holds_original:bool"
                " attempts:int prompt_sha256:str? request_sha256:str? reply_sha256:str?" + _FATE),
        _schema("edit_evidence", "literal evidence behind a verdict of 11_judge_edits", "secret",
                "intention_id condition judge order",
                "intention_id:str condition:str judge:str order:str replacement_evidence:str? original_evidence:str?"),
        # appendices G, I, J
        _schema("qualification", "one qualification case in one order, or a gate (case_id gate:...)", "public",
                "judge suite case_id order",
                "judge:str suite:str case_id:str order:str language:str? perturbation:str? harmful:bool?"
                " expected:str? label:str? passed:bool?" + _FATE),
        _schema("anchors", "one anchor case at the start or the end of a judging campaign", "public",
                "judge passage case_id",
                "judge:str passage:str case_id:str expected:str label:str?" + _FATE),
        _schema("second_verdicts", "one sampled fact judged by a second judge in one order", "public",
                "fact_id condition judge order",
                "fact_id:str condition:str judge:str order:str recording_id:str importance:str label:str?"
                " attempts:int prompt_sha256:str? request_sha256:str? reply_sha256:str?" + _FATE),
        _schema("notes", "one note written from one condition's transcript alone", "secret",
                "recording_id condition writer",
                "recording_id:str condition:str writer:str note_id:str text:str? attempts:int" + _FATE),
        _schema("note_verdicts", "one fact judged in the pair of source note and condition note", "public",
                "fact_id condition judge",
                "fact_id:str condition:str judge:str recording_id:str importance:str source_included:bool? label:str?"
                " n_unsupported:int?" + _FATE),
        _schema("acoustics", "one measure of one recording in one condition", "public",
                "recording_id condition measure",
                "recording_id:str condition:str measure:str value:float? unit:str" + _FATE),
        # appendices D, M, N, E: variants of the run
        _schema("assignment_grid", "one pair of distance thresholds", "public",
                "min_source_distance min_target_distance",
                "min_source_distance:float min_target_distance:float n_profiles:int n_admissible:float"
                " least_admissible:int n_assigned:int n_infeasible:int binding:str? n_changed:int"),
        _schema("operating_points", "one measure at one rendered operating point", "public",
                "point measure condition", "point:str" + _MEASURED),
        _schema("operating_effects", "one paired contrast of an operating point with the primary one", "public",
                "contrast_id", _EFFECT + _FATE),
        _schema("frontend_recordings", "one recording heard by one recogniser and diarizer", "public",
                "asr diarizer recording_id",
                "asr:str diarizer:str recording_id:str n_reference:int? word_errors:int? speaker_word_errors:int?"
                " scored_s:float? diarization_error_s:float? n_words:int n_untimed:int speech_s:float?"
                " covered_s:float? downstream:str downstream_reason:str?" + _FATE),
        _schema("frontend_measures", "one measure of one recogniser and diarizer", "public",
                "asr diarizer measure condition", "asr:str diarizer:str" + _MEASURED + _FATE),
        _schema("noise_floor", "one endpoint of the original, measured twice", "public", "endpoint",
                "endpoint:str n_items:int n_differing:int estimate:float? by_construction:bool" + _FATE),
        _schema("panel_ratings", "one reviewer's rating of one excerpt of the listening panel", "public",
                "reviewer item_id",
                "reviewer:str item_id:str kind:str condition:str recording_id:str position:int answer:str? plays:int?"
                + _FATE),
        _schema("redactions", "one covered stretch of an affected turn under one kind of cover", "secret",
                "region_id kind start",
                "region_id:str recording_id:str kind:str start:int covered_s:float? found:bool? start_error_s:float?"
                " end_error_s:float? n_edits:int? n_characters:int? original_status:str? edge_db:float?" + _FATE),
        _schema("stressed", "one recording under one stressor", "public", "recording_id stressor",
                "recording_id:str stressor:str family:str strength:str duration_s:float? n_inserted:int" + _FATE),
        _schema("stressor_measures", "one measure under one stressor", "public", "stressor measure condition",
                "stressor:str" + _MEASURED),
        _schema("stressor_effects", "one paired endpoint, stressed minus undisturbed", "public", "contrast_id",
                _EFFECT + _FATE),
        # 13_contrasts
        _schema("contrasts", "one paired contrast", "public", "contrast_id",
                "contrast_id:str endpoint:str condition_a:str condition_b:str estimate:float? ci_low:float?"
                " ci_high:float? detectable:float? equal_conversation:float? n_items:int n_clusters:int p:float? p_holm:float?"
                " family:str?" + _FATE),
        _schema("claims", "one number that prose may use", "public", "claim_id",
                "claim_id:str label:str value:float? unit:str numerator:float? denominator:float? unknown:int"
                " not_applicable:int ci_low:float? ci_high:float?" + _FATE),
        _schema("scorecard", "one aim of the demo and what was reached", "public", "metric",
                "metric:str value:float? numerator:float? denominator:float? aim:float? direction:str met:bool?"
                " note:str?"),
        # H_asq_phi
        _schema("asq_queries", "one ASQ-PHI query", "public", "query_id",
                "query_id:str split:str hard_negative:bool n_gold:int n_unlocated:int n_predicted:int gold_chars:int"
                " covered_chars:int n_covered:int n_covered_contract:int tp_full:int fp_full:int fn_full:int tp_shared:int fp_shared:int"
                " fn_shared:int" + _FATE),
        _schema("asq_scores", "one measure of detection in one part of ASQ-PHI", "public", "split measure",
                "split:str measure:str value:float? ci_low:float? ci_high:float? numerator:int denominator:int"
                " n_queries:int" + _FATE),
        _schema("asq_types", "one type in one half of ASQ-PHI", "public", "split type",
                "split:str type:str n_gold:int tp:int fp:int fn:int n_covered:int precision:float? recall:float?"
                " f1:float?"),
        _schema("asq_residue", "errors of one kind between two types in one half of ASQ-PHI", "public",
                "split kind gold_type predicted_type",
                "split:str kind:str gold_type:str predicted_type:str n:int"),
        # U_leakage_dimensions
        _schema("leak_people", "one profile and what is known of its person", "secret", "profile_id",
                "profile_id:str recording_id:str person:str language:str sex:str? age:str? accent:str?"),
        _schema("leak_segments", "a piece of one version of a profile's speech, embedded", "secret",
                "kind system profile_id pseudo_profile rate_hz backend part piece",
                "kind:str system:str profile_id:str pseudo_profile:int rate_hz:int backend:str part:int piece:int"
                " text_id:str? seconds:float vector:list"),
        _schema("leak_conditions", "one sampling rate and segment length", "public", "condition",
                "condition:str n_segments:int n_people:int n_systems:int" + _FATE),
        _schema("leak_rates", "one equal error rate of a trial type", "public", f"{_PLACE} trial_type",
                f"{_PLACED} trial_type:str {_EER} ideal_eer:float? gap_to_original:float? gap_low:float?"
                f" gap_high:float? {_COSTS}" + _FATE),
        _schema("leak_attacks", "one attacker on speakers that it did not learn from", "public",
                f"{_PLACE} level enrolment attacker",
                f"{_PLACED} level:str enrolment:str attacker:str n_train_speakers:int? n_train_rows:int? {_EER}"
                f" eer_original:float? gap_to_original:float? {_COSTS}" + _FATE),
        _schema("leak_soft", "one quantity of the soft biometric leakage score", "public", f"{_PLACE} set quantity",
                f"{_PLACED} set:str quantity:str value:float? ci_low:float? ci_high:float? n_rows:int? n_speakers:int?"
                " attributes:str" + _FATE),
        _schema("leak_subgroups", "one subgroup: segments whose attributes are all predicted right", "public",
                f"{_PLACE} attributes subgroup",
                f"{_PLACED} attributes:str subgroup:str numerator:int denominator:int n_speakers:int"),
        _schema("leak_search", "share of probes whose speaker is among the first k", "public", f"{_PLACE} k",
                f"{_PLACED} k:int value:float? chance:float? chance_low:float? chance_high:float? n_gallery:int"
                " n_probes:int" + _FATE),
        _schema("leak_structure", "alignment of original and anonymised embeddings", "public", f"{_PLACE} method",
                f"{_PLACED} method:str held_out:float? in_sample:float? chance:float? chance_in_sample:float?"
                " dimension:int n_pairs:int n_speakers:int" + _FATE),
        _schema("leak_utility", "word errors of one system, pseudo-profile and recogniser", "public",
                "system pseudo_profile asr test_set",
                "system:str pseudo_profile:int asr:str test_set:str n_utterances:int n_failed:int n_reference:int"
                " errors:int wer:float? similarity:float?"),
        _schema("leak_anonymity", "assignments of one language against an attacker who knows the pool", "public",
                "language pseudo_profile",
                "language:str pseudo_profile:int n_profiles:int n_assigned:int possible_median:float? as_good_median:float?"
                " n_found_out:int"),
        # V_low_fpr
        _schema("leak_users", "one cell of the user membership game", "public",
                "condition backend system pseudo_profile regime attacker scoring length fpr",
                "condition:str backend:str system:str pseudo_profile:int regime:str attacker:str scoring:str length:int"
                f" {_TAIL} n_train_speakers:int?" + _FATE),
        _schema("leak_values", "one cell of the attribute game", "public",
                "condition backend system pseudo_profile attribute regime attacker fpr",
                "condition:str backend:str system:str pseudo_profile:int attribute:str regime:str attacker:str"
                f" accuracy:float? auc:float? {_TAIL}" + _FATE),
    ]
}
# fmt: on


def content_id(prefix: str, *parts: object) -> str:
    """A short id made from content: the same parts give the same id on every machine."""
    text = "\x1f".join(str(part) for part in parts)
    return prefix + hashlib.sha256(text.encode()).hexdigest()[:12]


def check_table(name: str, table: pd.DataFrame) -> pd.DataFrame:
    """Check a table against its schema; return it typed, in column and key order.

    Raises
    ------
    TableError
        A column is missing or unknown, a type is wrong, a value is absent, a key
        repeats, or a pair of ordered columns is reversed. The message has the table,
        the rule, the count and up to three keys.
    """
    schema = _schema_of(name)
    missing = [column for column in schema.columns if column not in table.columns]
    unknown = [column for column in table.columns if column not in schema.columns]
    if missing or unknown:
        raise TableError(f"{name}: missing columns {missing}, unknown columns {unknown}")
    typed = {column: _typed(name, table[column], kind) for column, kind in schema.columns.items()}
    out = pd.DataFrame(typed).sort_values(list(schema.key), kind="stable").reset_index(drop=True)
    _refuse(
        schema, out, out.duplicated(list(schema.key), keep=False), f"repeat the key {schema.key}"
    )
    for column, kind in schema.columns.items():
        if not kind.endswith("?"):
            _refuse(schema, out, out[column].isna(), f"have no {column}")
    for low, high in schema.ordered:
        _refuse(schema, out, (out[low] > out[high]).fillna(False), f"have {low} after {high}")
    if "status" in schema.columns:
        _refuse(schema, out, ~out["status"].isin(STATUSES), f"have a status outside {STATUSES}")
        unexplained = (out["status"] != "ok") & out["reason"].isna()
        _refuse(schema, out, unexplained, "are not ok and give no reason")
    return out


def _schema_of(name: str) -> Schema:
    if name not in SCHEMAS:
        raise TableError(f"{name}: no such table; known: {', '.join(sorted(SCHEMAS))}")
    return SCHEMAS[name]


def _typed(name: str, column: pd.Series, kind: str) -> pd.Series:
    kind = kind.rstrip("?")
    if kind == "list":
        return column
    if kind == "str" and not all(isinstance(v, str) or pd.isna(v) for v in column):
        raise TableError(f"{name}: column {column.name} must hold text")
    try:
        return column.astype(_DTYPES[kind])
    except (TypeError, ValueError) as error:
        quoted = f" ({error})" if SCHEMAS[name].visibility == "public" else ""
        raise TableError(f"{name}: column {column.name} must be {kind}{quoted}") from error


def _refuse(schema: Schema, table: pd.DataFrame, bad: pd.Series, rule: str) -> None:
    if not bad.any():
        return
    # A key of a secret table may hold a file name or a person's.
    secret = schema.visibility == "secret"
    key = [c for c in schema.key if not secret or c.endswith(("_id", "_index"))]
    shown = table.loc[bad, key].head(3).astype(str).agg(" ".join, axis=1)
    raise TableError(f"{schema.name}: {int(bad.sum())} rows {rule}, e.g. {'; '.join(shown)}")


def as_table(name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """A frame in the columns of a table; absent ones are NA, others are left out."""
    return frame.reindex(columns=list(_schema_of(name).columns))


def empty_table(name: str) -> pd.DataFrame:
    """A table without rows."""
    return check_table(name, pd.DataFrame({column: [] for column in _schema_of(name).columns}))


@dataclass(frozen=True)
class Run:
    """The folder of one run and the places inside it."""

    root: Path

    @property
    def secret(self) -> Path:
        return self.root / "secret"

    @property
    def wav(self) -> Path:
        return self.root / "wav"

    def table_path(self, name: str) -> Path:
        schema = _schema_of(name)
        folder = self.secret / "tables" if schema.visibility == "secret" else self.root / "tables"
        return folder / f"{name}.parquet"

    def original_path(self, recording_id: str) -> Path:
        """The ingested 16-kHz original; it stays under ``secret/``."""
        return self.secret / "wav" / "original" / f"{recording_id}.wav"

    def turn_path(self, condition: str, recording_id: str, item_id: str) -> Path:
        return self.wav / "turns" / condition / recording_id / f"{item_id}.wav"

    def conversation_path(self, condition: str, recording_id: str) -> Path:
        if condition == "original":
            return self.original_path(recording_id)
        return self.wav / "conversations" / condition / f"{recording_id}.wav"

    def voice_path(self, voice_id: str) -> Path:
        return self.wav / "pool" / f"{voice_id}.wav"

    def relative(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()

    def has(self, name: str) -> bool:
        return self.table_path(name).exists()

    def read(self, name: str) -> pd.DataFrame:
        """Read a table; plain NumPy-backed numbers where nothing is missing.

        Raises
        ------
        TableError
            It is absent, or its file is damaged.
        """
        path = self.table_path(name)
        if not path.exists():
            raise TableError(
                f"{name}: not in run {self.root.name}; run the stage that owns it first"
            )
        try:
            return pd.read_parquet(path)
        except Exception as error:  # a changed byte may raise anything
            raise TableError(
                f"{name}: {self.relative(path)} of run {self.root.name} cannot be read"
                f" ({getattr(error, 'strerror', None) or type(error).__name__}); `aegis run`"
                " makes it anew"
            ) from error

    def write(self, name: str, table: pd.DataFrame) -> Path:
        """Check and write a table atomically."""
        checked, buffer, path = check_table(name, table), io.BytesIO(), self.table_path(name)
        kinds = SCHEMAS[name].columns.items()
        stored = pa.schema([(column, _STORED[kind.rstrip("?")]) for column, kind in kinds])
        checked.to_parquet(buffer, index=False, schema=stored)
        write_bytes(path, buffer.getvalue())
        return path


def open_run(name: str, create: bool = False) -> Run:
    """Open ``runs/<name>`` (or below ``$AEGIS_RUNS``); ``create`` makes its folders.

    Raises
    ------
    TableError
        No such run, or the name leads elsewhere.
    """
    if not name or name.startswith(".") or set(name) & set("/\\\0"):
        raise TableError(f"run {name!r}: a run's name is one folder's, without / and leading dot")
    base = Path(os.environ.get("AEGIS_RUNS", PROJECT / "runs"))
    run = Run(base / name)
    if create:
        run.root.mkdir(parents=True, exist_ok=True)
        run.secret.mkdir(mode=0o700, exist_ok=True)
        run.secret.chmod(0o700)
    elif not run.root.exists():
        raise TableError(f"run {name!r}: no folder {run.root}; start it with `aegis run`")
    return run
