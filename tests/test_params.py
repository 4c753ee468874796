from __future__ import annotations

from pathlib import Path

import pytest

from aegis import params
from aegis.errors import ParamError

CELL = """# %% tags=["parameters"]
run_name: str = "demo"  # the run
code: str = "001"  # a code
seed: int = 20261005  # of the draws
distance: float = 0.7  # least cosine distance
strict: bool = True  # refuse
engines: list[str] = ["ge2e"]  # backends
grid: list[float] = [0.6, 0.7]  # thresholds
limit: int | None = None  # most items

# %%
x = 1
"""


@pytest.fixture
def notebooks(tmp_path: Path) -> dict[str, Path]:
    path = tmp_path / "03_assign.py"
    path.write_text("# %% [markdown]\n# # Title\n\n" + CELL)
    return {"03_assign": path}


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "demo.yaml"
    path.write_text(text)
    return path


def test_declarations_have_name_type_default_and_comment(notebooks: dict[str, Path]) -> None:
    found = params.read_declarations(notebooks["03_assign"])
    assert list(found) == [
        "run_name", "code", "seed", "distance", "strict", "engines", "grid", "limit",
    ]  # fmt: skip
    assert found["distance"] == params.Declaration(
        "distance", "float", 0.7, "least cosine distance"
    )
    assert found["limit"].annotation == "int | None"


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("x = 1", "'x = 1' is not annotated"),
        ("x: dict = {}", "unsupported annotation 'dict'"),
        ("x: int = f()", "x is not a plain literal"),
        ("x: int = 'a'", r"expected int, got 'a' \(str\)"),
    ],
)
def test_a_parameters_cell_holds_annotated_literals(
    tmp_path: Path, cell: str, message: str
) -> None:
    path = tmp_path / "00_x.py"
    path.write_text(f'# %% tags=["parameters"]\n{cell}\n')
    with pytest.raises(ParamError, match=message):
        params.read_declarations(path)


def test_a_notebook_has_one_parameters_cell(tmp_path: Path) -> None:
    path = tmp_path / "00_x.py"
    path.write_text("# %%\nx = 1\n")
    with pytest.raises(ParamError, match=r"00_x\.py: 0 cells are tagged parameters, expected 1"):
        params.read_declarations(path)


def test_a_profile_changes_values(tmp_path: Path, notebooks: dict[str, Path]) -> None:
    path = write(
        tmp_path,
        "title: Demo\nprofile: embedded\n"
        "03_assign:\n  code: '007'\n  distance: 1\n  limit: null\n",
    )
    study = params.read_params(path, notebooks)
    assert (study.run_name, study.title, study.profile) == ("demo", "Demo", "embedded")
    assert study.notebooks == ("03_assign",)
    assert study.values == {"03_assign": {"code": "007", "distance": 1, "limit": None}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("03_asign: {}", "demo.yaml: unknown notebook '03_asign', did you mean '03_assign'"),
        ("03_assign: {distanc: 1}", "03_assign: unknown parameter 'distanc', did you mean"),
        ("03_assign: {zzz: 1}", "unknown parameter 'zzz'; known: run_name, code"),
        ("03_assign: {distance: far}", r"03_assign.distance: expected float, got 'far' \(str\)"),
        ("03_assign: {code: 007}", r"03_assign.code: expected str, got 7 \(int\); quote it"),
        ("03_assign: {seed: true}", r"expected int, got True \(bool\)"),
        ("03_assign: {strict: 1}", r"expected bool, got 1 \(int\)"),
        ("03_assign: {seed: 1.5}", r"expected int, got 1.5 \(float\)"),
        ("03_assign: {engines: ge2e}", r"expected list\[str\], got 'ge2e' \(str\)"),
        ("03_assign: {seed: null}", r"expected int, got None"),
        ("03_assign: {seed: 1, seed: 2}", "the key 'seed' is repeated"),
        ("03_assign: 5", "03_assign must hold NAME: VALUE lines"),
        ("- a", "expected sections by notebook name"),
        ("a: [", "not valid YAML"),
        ("notebooks: [04_conv]", "unknown notebook '04_conv'"),
    ],
)
def test_a_wrong_profile_is_refused(
    tmp_path: Path, notebooks: dict[str, Path], text: str, message: str
) -> None:
    with pytest.raises(ParamError, match=message):
        params.read_params(write(tmp_path, text), notebooks)


def test_an_absent_profile_names_its_neighbour(tmp_path: Path, notebooks: dict[str, Path]) -> None:
    write(tmp_path, "")
    with pytest.raises(ParamError, match=r"demmo.yaml: no such .*, did you mean 'demo"):
        params.read_params(tmp_path / "demmo.yaml", notebooks)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("code=007", "007"),
        ("code=a=b", "a=b"),
        ("seed=5", 5),
        ("distance=1e-3", 0.001),
        ("strict=false", False),
        ("engines=ge2e,dvector", ["ge2e", "dvector"]),
        ("grid=[0.5, 1]", [0.5, 1]),
        ("limit=none", None),
        ("limit=3", 3),
    ],
)
def test_an_override_has_the_declared_type(
    tmp_path: Path, notebooks: dict[str, Path], text: str, value: object
) -> None:
    study = params.read_params(write(tmp_path, ""), notebooks, [f"03_assign.{text}"])
    assert study.values == {"03_assign": {text.split("=")[0]: value}}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("03_assign.seed", r"expected NOTEBOOK.NAME=VALUE"),
        ("seed=5", r"expected NOTEBOOK.NAME=VALUE"),
        ("03_assign.sed=5", "unknown parameter 'sed', did you mean 'seed'"),
        ("03_asign.seed=5", "unknown notebook '03_asign', did you mean"),
        ("03_assign.seed=five", r"expected int, got 'five'"),
        ("03_assign.strict=maybe", r"expected bool, got 'maybe'"),
    ],
)
def test_a_wrong_override_is_refused(
    tmp_path: Path, notebooks: dict[str, Path], text: str, message: str
) -> None:
    with pytest.raises(ParamError, match=message):
        params.read_params(write(tmp_path, ""), notebooks, [text])


def test_a_profile_may_extend_another(tmp_path: Path, notebooks: dict[str, Path]) -> None:
    write(tmp_path, "title: Base\n03_assign:\n  code: '007'\n  distance: 0.6\n")
    path = tmp_path / "more.yaml"
    path.write_text("extends: demo.yaml\nprofile: more\n03_assign:\n  distance: 0.5\n")
    study = params.read_params(path, notebooks)
    assert study.values["03_assign"] == {"code": "007", "distance": 0.5}
    assert (study.run_name, study.title, study.profile) == ("demo", "Base", "more")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("extends: none.yaml\n", "no such parameter file"),
        ("extends: 3\n", "must name a file beside it"),
        ("extends: more.yaml\n", "extends another profile itself"),
    ],
)
def test_a_wrong_extension_is_refused(
    tmp_path: Path, notebooks: dict[str, Path], text: str, message: str
) -> None:
    path = tmp_path / "more.yaml"
    path.write_text(text)
    with pytest.raises(ParamError, match=message):
        params.read_params(path, notebooks)
