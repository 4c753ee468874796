"""What the leakage papers print, put through this study's own measures.

Unit: one printed value of a system. :mod:`aegis.published` checks each printed number by
the formula beside it; here the measures that judge our own systems must give the printed
tables as well, within the rounding of their inputs.

Functions: :func:`printed_components`, :func:`check_soft`, :func:`check_ranks`,
:func:`component_table`, :func:`disagreements`.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from aegis import leakage
from aegis.leakage_tables import ALL, component_correlations
from aegis.published import check_numbers, read_numbers, value_of

SYSTEMS = ("baseline", "voxlet", "rasp", "shadow", "phortress", "original")
WEIGHTING_IDS = {
    "default": "default", "equal": "equal", "alpha_heavy": "alpha", "beta_heavy": "beta",
    "gamma_heavy": "gamma", "no_subgroup": "nosub", "minimal_subgroup": "minsub",
}  # fmt: skip


def printed_components() -> pd.DataFrame:
    """Tables 5 and 7 of the NIST paper: one row a system."""
    of = read_numbers("leakage").set_index("id")["value"]
    names = {
        "sbls": "sbls", "p_attr": "attr", "p_assoc": "assoc", "p_subgroup": "sub",
        "auc_sex": "sex", "auc_age": "age", "sbls_accent": "with", "difference": "delta",
    }  # fmt: skip
    rows = [
        {"system": system, **{name: of[f"{system}_{end}"] for name, end in names.items()}}
        for system in SYSTEMS
    ]
    return pd.DataFrame(rows)


def check_soft() -> pd.DataFrame:
    """SBLS from its components (0.001), P_attr from both AUCs and the differences (0.0015)."""
    rows = []
    for row in printed_components().to_dict("records"):
        components = (row["p_attr"], row["p_assoc"], row["p_subgroup"])
        aucs = [row["auc_sex"], row["auc_age"]]
        for quantity, printed, computed, tolerance in (
            ("SBLS", row["sbls"], leakage.sbls(*components), 0.001),
            ("P_attr", row["p_attr"], leakage.attribute_privacy(aucs), 0.0015),
            ("accent difference", row["difference"], row["sbls_accent"] - row["sbls"], 0.0015),
        ):
            fine = abs(computed - printed) <= tolerance + 1e-12
            rows.append({
                "system": row["system"], "quantity": quantity, "printed": printed,
                "computed": computed, "agrees": fine,
            })  # fmt: skip
    return pd.DataFrame(rows)


def check_ranks() -> pd.DataFrame:
    """The ranks of Table 8 under seven weightings, from the components of Table 5."""
    of = read_numbers("leakage").set_index("id")["value"]
    table = printed_components().set_index("system")[["p_attr", "p_assoc", "p_subgroup"]]
    rows = []
    for weighting, weights in leakage.WEIGHTINGS.items():
        ranks = (table @ np.array(weights)).rank(ascending=False)
        for system in SYSTEMS:
            printed = of[f"{system}_rank_{WEIGHTING_IDS[weighting]}"]
            rows.append({
                "weighting": weighting, "system": system, "printed": printed,
                "computed": ranks[system], "agrees": bool(ranks[system] == printed),
            })  # fmt: skip
    return pd.DataFrame(rows)


def component_table() -> pd.DataFrame:
    """Correlations of the printed components over the six systems, and whether ranks tie."""
    wide = printed_components()[["system", "p_attr", "p_assoc", "p_subgroup"]]
    long = wide.melt("system", var_name="quantity", value_name="value")
    return component_correlations(long.assign(set="base", test_set=ALL))


def disagreements(document: str) -> pd.DataFrame:
    """Printed numbers of a paper that its own other numbers do not give."""
    checked = check_numbers(read_numbers(document))
    wrong = checked[checked["verdict"] == "differs"]
    printed = [value_of(row) for row in wrong.to_dict("records")]
    return wrong[["place", "label", "computed", "formula"]].assign(printed=printed)
