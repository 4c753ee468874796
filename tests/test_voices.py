"""Assignment rules on hand-made vectors, and against exhaustive search."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aegis import voices
from aegis.errors import ManifestError
from aegis.voices import Rules


def units_table(n: int, **columns: object) -> pd.DataFrame:
    base = {
        "voice_id": [f"v{i:02d}" for i in range(n)], "language": "en", "accent": "us",
        "native_english": True, "gender_presentation": "female", "traits": "native=yes",
        "eligible": True,
    }  # fmt: skip
    return pd.DataFrame(base | columns)


def profiles_table(n: int, **columns: object) -> pd.DataFrame:
    base = {
        "profile_id": [f"d/r/S{i + 1}" for i in range(n)], "recording_id": "d/r",
        "speaker": [f"S{i + 1}" for i in range(n)], "language": "en", "status": "ok",
        "reason": None,
    }  # fmt: skip
    return pd.DataFrame(base | columns)


def circle(*degrees: float) -> np.ndarray:
    """Unit vectors in the plane: d = 1 - cos(angle between them)."""
    angles = np.radians(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def pool_of(
    profiles: pd.DataFrame, units: pd.DataFrame, p: np.ndarray, u: np.ndarray, rules: Rules
):
    by_profile = dict(zip(profiles["profile_id"], p, strict=True))
    return voices.prepare(
        profiles, units, by_profile, dict(zip(units["voice_id"], u, strict=True)), rules
    )


# --- vectors --------------------------------------------------------------------------------


def test_unit_norm_marks_zero_and_infinite_rows():
    out = voices.unit_norm([[3.0, 4.0], [0.0, 0.0], [np.inf, 1.0], [np.nan, 1.0]])
    assert out[0] == pytest.approx([0.6, 0.8])
    assert np.isnan(out[1:]).all()


def test_centre_by_hand():
    # (3, 4) -> (.6, .8); minus (.6, 0) -> (0, .8) -> (0, 1). A vector on the mean is undefined.
    out = voices.centre([[3.0, 4.0], [0.6, 0.0]], [0.6, 0.0])
    assert out[0] == pytest.approx([0.0, 1.0])
    assert out[1] == pytest.approx([1.0, 0.0])
    assert np.isnan(voices.centre([[1.0, 0.0]], [1.0, 0.0])).all()


def test_centring_makes_room_for_the_thresholds():
    rng = np.random.default_rng(1)
    raw = np.abs(rng.normal(size=(60, 256))) + 1.0  # never negative, like GE2E
    unit = voices.unit_norm(raw)
    assert (1 - unit @ unit.T).max() < 0.65
    centred = voices.centre(raw, unit[:30].mean(axis=0))[30:]
    pairs = np.triu_indices(30, 1)
    assert ((1 - centred @ centred.T)[pairs] >= 0.70).mean() > 0.9


def test_cohort_files_hold_a_mean_and_their_provenance():
    for backend in ("ge2e", "dvector"):
        content = voices.read_cohort(backend)
        assert len(content["mean"]) == 256
        assert content["n_voices"] == len(content["voices"])
        assert 0 < np.linalg.norm(voices.cohort_centre(backend)) < 1


def test_cohort_is_disjoint_from_corpus_and_pool():
    from aegis.manifests import reserved_voices
    from aegis.pool import read_pool
    from aegis.tables import PROJECT

    cohort = set(voices.read_cohort("ge2e")["voices"])
    corpus = reserved_voices("demo")
    pool = read_pool(PROJECT / "data_manifests" / "pool.yaml", corpus)
    assert not cohort & {unit.base_voice for unit in pool.units}
    assert not {f"kokoro:{voice}" for voice in cohort} & corpus


@pytest.mark.engine
def test_no_person_is_twice_in_the_cohort_or_also_in_corpus_or_pool():
    """One person: the same name after the language, and voices over 0.9 alike.

    Names alone do not say it: hf_alpha and jf_alpha are numbered speakers, 0.1 alike.
    """
    from aegis.engines.synthesis import MIXTURES
    from aegis.manifests import MANIFESTS, reserved_voices
    from aegis.pool import read_pool
    from aegis.weights import model_dir

    folder = model_dir("kokoro-voices") / "voices"
    points = {path.stem: np.fromfile(path, np.float32) for path in folder.glob("*.bin")}
    middle = np.mean(list(points.values()), axis=0)
    points = {name: voices.unit_norm(point - middle) for name, point in points.items()}

    def person(name):
        """The voices of whoever speaks with this one."""
        called = [other for other in points if other.partition("_")[2] == name.partition("_")[2]]
        return frozenset(other for other in called if points[other] @ points[name] > 0.9)

    assert person("em_alex") == {"em_alex", "pm_alex"} and person("hf_alpha") == {"hf_alpha"}
    cohort = [person(name) for name in voices.read_cohort("ge2e")["voices"]]
    assert len(set(cohort)) == len(cohort) == 18
    corpus = reserved_voices("demo")
    pool = read_pool(MANIFESTS / "pool.yaml", corpus)
    spoken = {voice.partition(":")[2] for voice in corpus if voice.startswith("kokoro:")}
    # All but the last part of a mixture; that one lends its sounds, as the pool's file says.
    parts = [MIXTURES.get(name, name).split("+") for name in {u.base_voice for u in pool.units}]
    taken = {part for names in parts for part in (names[:-1] or names)}
    people = [{person(name) for name in names & points.keys()} for names in (spoken, taken)]
    assert not people[0] & people[1]
    assert not set(cohort) & (people[0] | people[1])


def test_missing_or_broken_cohort(tmp_path):
    with pytest.raises(ManifestError, match="no cohort for 'x'"):
        voices.read_cohort("x", tmp_path)
    (tmp_path / "y.json").write_text(json.dumps({"mean": [1.0, float("nan")]}))
    with pytest.raises(ManifestError, match="not finite"):
        voices.read_cohort("y", tmp_path)


def test_describe_backends_counts_pairs_by_hand():
    profiles = pd.DataFrame({"profile_id": ["p"], "backend": "ge2e", "vector": [[1.0, 0.0]]})
    units = pd.DataFrame(
        {"voice_id": list("abc"), "backend": "ge2e",
         "vector": [[1.0, 0.0], [0.0, 1.0], [0.32, np.sqrt(1 - 0.32**2)]]}
    )  # fmt: skip
    table, pairs = voices.describe_backends(profiles, units)  # distances 0, 1, 0.68
    row = table.iloc[0]
    assert (row["n_pairs"], row["share_over_070"], row["share_over_065"]) == (3, 1 / 3, 2 / 3)
    assert row["median_distance"] == pytest.approx(0.68)
    assert sorted(pairs["distance"].round(6)) == [0.0, 0.68, 1.0]


# --- eligibility, traits, ranking -----------------------------------------------------------


def test_native_units_only_where_there_are_enough():
    units = units_table(
        4, language=["en", "en", "fr", "fr"],
        traits=["native=yes", "native=no", "native=no", None],
        eligible=[True, True, True, False],
    )  # fmt: skip
    mask, admitted = voices.speakable_units(["en", "fr", "de", None], units, min_native=1)
    assert mask.tolist() == [
        [True, False, False, False],  # one native unit is enough
        [False, False, True, False],  # no eligible native one: the flagged unit
        [False] * 4,
        [False] * 4,
    ]
    assert admitted == {"en": 0, "fr": 1, "de": 0}
    wider, admitted = voices.speakable_units(["en"], units, min_native=2)
    assert wider.tolist() == [[True, True, False, False]]
    assert admitted == {"en": 1}


def test_known_native_english_must_match():
    units = units_table(3, native_english=pd.array([True, False, None], dtype="boolean"))
    mask, _ = voices.speakable_units(["en"] * 3, units, 1, [True, False, None])
    assert mask.tolist() == [[True, False, False], [False, True, False], [True, True, True]]


def test_match_traits_by_hand():
    profiles = pd.DataFrame({"language": ["en", None], "accent": ["us", "unknown"], "x": [1, 1]})
    units = units_table(2, accent=["us", "gb"])
    weights = {"language": 2.0, "accent": 1.0, "gender_presentation": 1.0}
    out = voices.match_traits(profiles, units, weights)
    assert out.tolist() == [[1.0, pytest.approx(2 / 3)], [0.0, 0.0]]


def test_rank_formula_and_ties():
    units, distances = np.array([3, 1, 2]), np.array([0.8, 1.0, 1.0])
    ranked, score = voices.rank(units, distances, np.array([0, 0, 0, 0.5]), 0.5)
    # unit 3: .5 * .4 + .5 * .5 = .45; units 1 and 2: .25, in the order of their ids
    assert ranked.tolist() == [3, 1, 2]
    assert score == pytest.approx([0.45, 0.25, 0.25])


# --- retrieval ------------------------------------------------------------------------------


def test_retrieval_takes_the_nearest_that_are_far_enough():
    units = circle(10, 80, 90, 100, 180)
    found = voices.retrieve(circle(0), units, np.ones((1, 5), bool), 2, 0.70)
    assert found[0][0].tolist() == [1, 2]  # 10 degrees is too near, 180 not among the nearest 2
    assert found[0][1] == pytest.approx([1 - np.cos(np.radians(80)), 1.0], abs=1e-6)


def test_retrieval_guards():
    units = np.vstack([circle(90), np.full((1, 2), np.nan), circle(90), circle(120)])
    profiles = np.vstack([circle(0), np.full((1, 2), np.nan)])
    found = voices.retrieve(profiles, units, np.ones((2, 4), bool), 75, 0.70)
    assert found[0][0].tolist() == [0, 2, 3]  # k past the pool's end, NaN unit left out, tie by id
    assert found[1][0].size == 0
    nobody = voices.retrieve(profiles, units, np.zeros((2, 4), bool), 75, 0.70)
    assert [len(units) for units, _ in nobody] == [0, 0]


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.integers(1, 9), st.sampled_from([0.5, 0.9, 1.1]))
def test_retrieval_equals_a_full_sort(seed, k, limit):
    rng = np.random.default_rng(seed)
    profiles, units = (voices.unit_norm(rng.normal(size=(n, 3))) for n in (4, 60))
    allowed = rng.random((4, 60)) < 0.5
    found = voices.retrieve(profiles, units, allowed, k, limit)
    for row, (got, distances) in enumerate(found):
        d = 1 - units @ profiles[row]
        wanted = [i for i in np.argsort(d) if allowed[row, i] and d[i] >= limit - 1e-6][:k]
        assert got.tolist() == wanted
        assert distances == pytest.approx(d[wanted], abs=1e-5)


# --- assignment -----------------------------------------------------------------------------


def exhaustive(candidates, vectors, limit, taken=()):
    """The first feasible combination in lexicographic order of the ranks."""
    for combo in itertools.product(*[list(map(int, c)) for c in candidates]):
        used = [*taken, *combo]
        if len(set(used)) == len(used) and all(
            1 - vectors[a] @ vectors[b] >= limit - 1e-6
            for i, a in enumerate(used) for b in used[i + 1 :]
            if not (a in taken and b in taken)
        ):  # fmt: skip
            return combo
    return None


@settings(deadline=None, max_examples=120)
@given(
    st.integers(0, 10_000), st.integers(1, 4), st.sampled_from([0.1, 0.5, 0.9, 1.2]),
    st.integers(0, 1),
)  # fmt: skip
def test_assignment_equals_exhaustive_search(seed, n_speakers, limit, n_taken):
    rng = np.random.default_rng(seed)
    vectors = voices.unit_norm(rng.normal(size=(7, 3)))
    lists = [rng.permutation(7)[: rng.integers(1, 7)] for _ in range(n_speakers)]
    taken = rng.permutation(7)[:n_taken].tolist()
    outcome = voices.assign(lists, vectors, limit, 100_000, taken)
    wanted = exhaustive(lists, vectors, limit, taken)
    assert outcome.units == wanted
    assert (outcome.reason is None) == (wanted is not None)
    if wanted is None:
        without = exhaustive(lists, vectors, -1.0, taken)
        expected = "target-target" if without is not None else "no reuse"
        assert expected in outcome.reason


def test_backtracking_gives_up_a_first_choice():
    vectors = circle(0, 30, 180)
    lists = [np.array([0, 2]), np.array([1])]
    # Unit 0 is 30 degrees (d = 0.13) from unit 1, the second speaker's only one.
    assert voices.assign(lists, vectors, 0.65, 100).units == (2, 1)


def test_node_budget_is_named():
    vectors = circle(*range(0, 60, 2))
    lists = [np.arange(30)] * 3
    outcome = voices.assign(lists, vectors, 0.65, 7)
    assert outcome.units is None
    assert outcome.n_nodes == 7
    assert "node budget of 7" in outcome.reason


def test_no_speakers_need_no_units():
    assert voices.assign([], circle(0), 0.65, 10).units == ()


RULES = Rules(k=5, node_budget=100)


def test_tables_of_a_feasible_conversation():
    profiles, units = profiles_table(2), units_table(4)
    pool = pool_of(profiles, units, circle(0, 20), circle(5, 90, 180, 200), RULES)
    assignments, summary = voices.assign_profiles(pool, RULES)
    # The score grows with d. S1 prefers v02, v03, v01 (d = 2, 1.94, 1); S2 v03, v02: v01 is
    # only d = .66 away. v02 and v03 are 20 degrees apart, so S1 must go down to v01.
    assert assignments["voice_id"].tolist() == ["v01", "v03"]
    assert assignments["distance"].tolist() == pytest.approx([1.0, 2.0])
    assert assignments["score"].iloc[0] == pytest.approx(0.5 * 1.0 / 2 + 0.5)
    assert assignments["rank"].tolist() == [3, 1]
    assert assignments["n_eligible"].tolist() == [3, 2]
    row = summary.iloc[0]
    # S1 tried three units; S2 was placed once.
    assert (row["n_assigned"], row["n_nodes"], row["status"]) == (2, 4, "ok")
    assert row["min_target_distance"] == pytest.approx(1 - np.cos(np.radians(110)))


def test_second_pseudo_profile_keeps_the_first_and_reuses_nothing():
    profiles, units = profiles_table(1), units_table(4)
    vectors = circle(100, 180, 185, 260)
    pool = pool_of(profiles, units, circle(0), vectors, RULES)
    one, _ = voices.assign_profiles(pool, RULES, 1)
    two, summary = voices.assign_profiles(pool, RULES, 2)
    assert one["voice_id"].tolist() == ["v01"]
    # v02 lies 5 degrees from v01. v00 and v03 lie 80 degrees from it (d = .83) and both 100
    # degrees from the speaker, so the id decides.
    assert two["voice_id"].tolist() == ["v01", "v00"]
    assert two["pseudo_profile"].tolist() == [1, 2]
    three, summary = voices.assign_profiles(pool, RULES, 4)
    assert summary["status"].tolist() == ["ok", "ok", "ok", "failed"]
    # Only v02 is left: it is unused but too near to v01.
    assert "target-target distance >= 0.65" in three["reason"].iloc[3]
    five, _ = voices.assign_profiles(pool, replace(RULES, min_target_distance=0.0), 5)
    assert "no reuse within a conversation" in five["reason"].iloc[4]


def test_reasons_name_the_binding_constraint():
    units = units_table(2, language=["en", "fr"])
    profiles = profiles_table(
        3, recording_id=["d/a", "d/b", "d/c"], language=["en", "de", "en"],
        status=["ok", "ok", "failed"], reason=[None, None, "too little speech"],
    )  # fmt: skip
    vectors = np.vstack([circle(0, 0), np.full((1, 2), np.nan)])
    pool = pool_of(profiles, units, vectors, circle(10, 90), RULES)
    out, summary = voices.assign_profiles(pool, RULES)
    assert out["status"].tolist() == ["failed"] * 3
    assert out["voice_id"].isna().all()
    assert "source distance >= 0.70: none of 1" in out["reason"].iloc[0]
    assert "language 'de'" in out["reason"].iloc[1]
    assert "no profile embedding (too little speech)" in out["reason"].iloc[2]
    assert summary["n_assigned"].tolist() == [0, 0, 0]
    nothing = pool_of(profiles, units.assign(eligible=False), vectors, circle(10, 90), RULES)
    assert "unit quality" in voices.assign_profiles(nothing, RULES)[0]["reason"].iloc[0]


def test_one_failed_profile_does_not_take_the_others_along():
    profiles = profiles_table(2, status=["failed", "ok"], reason=["silent", None])
    vectors = np.vstack([np.full((1, 2), np.nan), circle(0)])
    pool = pool_of(profiles, units_table(1), vectors, circle(180), RULES)
    assert voices.assign_profiles(pool, RULES)[0]["voice_id"].tolist()[1] == "v00"


def test_settings_are_compared_with_the_first():
    profiles = profiles_table(2, recording_id=["d/a", "d/b"])
    pool = pool_of(profiles, units_table(2), circle(0, 100), circle(60, 200), RULES)
    # d of S1 to units: .5 and 1.94; of S2: .23 and 1.17.
    out = voices.compare_settings(
        pool,
        [Rules(k=5), Rules(k=5, min_source_distance=1.5), Rules(k=5, min_source_distance=0.2)],
    )
    assert out["n_assigned"].tolist() == [2, 1, 2]
    assert out["n_changed"].tolist() == [0, 1, 0]
    assert out["n_infeasible"].tolist() == [0, 1, 0]
    # At 1.5 the first profile keeps one unit, the second none; else both keep theirs.
    assert out["n_admissible"].tolist() == [1.0, 0.5, 2.0]
    assert out["least_admissible"].tolist() == [1, 0, 2]
    assert "source distance >= 1.50: none of 2" in out["binding"].iloc[1]


def test_the_grid_has_sixteen_settings_around_the_primary():
    found = voices.setting_grid(Rules())
    assert len(found) == len(set(found)) == 16
    assert found[0] == Rules()
    assert len(voices.setting_grid(Rules(min_source_distance=0.71))) == 17


def test_row_order_of_the_tables_does_not_matter():
    rng = np.random.default_rng(3)
    profiles, units = profiles_table(3), units_table(20)
    p, u = (voices.unit_norm(rng.normal(size=(n, 4))) for n in (3, 20))
    first, _ = voices.assign_profiles(pool_of(profiles, units, p, u, RULES), RULES)
    order = rng.permutation(20)
    shuffled = pool_of(profiles.iloc[::-1], units.iloc[order], p[::-1], u[order], RULES)
    again, _ = voices.assign_profiles(shuffled, RULES)
    pd.testing.assert_frame_equal(first, again)
