"""Commands end with 0, or 2 and one line; with 1 only where that was asked for."""

import json
from datetime import date, timedelta
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import calibrant as cb
from fuzz.categories.hostile_files import CHANGES, HARMLESS
from fuzz.categories.hostile_names import NAMES
from fuzz.commands import run
from fuzz.tables import WRITERS, folder, table

OPTIONS = {
    "--y": ("y", "q", "g", "missing", ""),
    "--p": ("p", "q", "p,q", "p*", "*", "g", "a=p", '"p"', "", ",", "=", "missing"),
    "--by": ("g", "w", "y", "g,w", "missing", ""),
    "--weight": ("w", "p", "g", "missing"),
    "--methods": ("es3", "ew2,isotonic", "ece", "es0", "es", "", "es3,es3", "kce"),
    "--task": ("confidence", "classwise", "0", "1", "x", ""),
    "--pos-label": ("1", "0", "a", ""),
    "--labels": ("0,1", "a", ",", ""),
    "--scale": ("prob", "logit", "percent", "x"),
    "--engine": ("memory", "duckdb", "auto", "x"),
    "--bad-rows": ("error", "drop", "x"),
    "--confidence": ("0.9", "0", "1", "2", "nan", "x"),
    "--alpha": ("1", "2", "0", "-1", "nan", "inf", "x"),
    "--seed": ("0", "-1", "99999999999999999999", "x"),
    "--format": ("table", "json", "csv", "markdown", "x"),
    "--mute": ("CAL001", "x", ""),
    "--fail-above": ("0", "0.5", "-1", "nan", "x"),
    "--fail-by": ("estimate", "low", "high", "x"),
    "--fail-on": ("minor", "severe", "CAL001", "x"),
    "--axes": ("prob", "logit", "x"),
    "--kind": ("bars", "diagonal", "x"),
    "--method": ("es3", "platt", "temperature", "x"),
    "--suffix": ("_c", "", "x"),
}
KNOWN = {
    "evaluate": (
        "--y --p --by --weight --methods --task --pos-label --labels --scale "
        "--engine --bad-rows --confidence --alpha --seed --format --mute "
        "--fail-above --fail-by --fail-on"
    ),
    "compare": "--y --p --weight --task --pos-label --scale --bad-rows --seed --format",
    "plot": "--y --p --by --task --method --kind --axes --scale --bad-rows",
    "report": "--y --p --by --methods --task --scale --bad-rows --format --fail-on",
    "calibrate": "--y --p --weight --method --pos-label --scale --bad-rows",
    "apply": "--p --scale --engine --suffix",
    "aggregate": "--y --p --by --weight --task --scale --engine --bad-rows",
}
OUT = (
    "out.csv",
    "out.png",
    "out.html",
    "out.json",
    "out.parquet",
    "out.x",
    "no/o.csv",
    ".",
)
MAP = "map.json"
TYPES = (
    lambda value: [value],
    lambda value: {"a": value},
    lambda value: str(value).encode(),
    lambda _: None,
    lambda value: Decimal(str(value)) if value in {0, 1} else Decimal(1),
    lambda _: date(2024, 1, 1),
    lambda _: timedelta(1),
    lambda _: 2**60,
    lambda _: float("nan"),
    lambda value: value == 1,
    str,
)


def case(rng):
    with folder() as path:
        files = _files(rng, path)
        command, arguments = _command(rng, files)
        code, out, err = run(path, command, *arguments)
    told = f"calibrant {command} {' '.join(map(repr, arguments))}: {code}\n{out}\n{err}"
    fails = any(a.startswith("--fail") for a in arguments)
    assert code in {0, 1, 2, 3} if fails else code in {0, 2}, told
    assert "Traceback" not in err, told
    assert bool(err) >= (code == 2), told
    if code == 0 and "json" in arguments and command in {"evaluate", "compare"}:
        json.loads(out)


def _files(rng, path):
    """Write a good file, a bad one, an odd name, and a map."""
    columns = table(rng, least=8, most=60)
    kind = str(rng.choice(list(WRITERS)))
    good = WRITERS[kind](path / f"rows.{kind}", columns)
    changes = CHANGES | HARMLESS
    change = changes[str(rng.choice(list(changes)))]
    (path / f"bad.{kind}").write_bytes(change(rng, good.read_bytes()))
    odd = [name for name in NAMES if "/" not in name and "\0" not in name]
    name = f"{str(rng.choice(odd))[:100]}.{kind}"
    (path / name).write_bytes(good.read_bytes())
    _write_odd_columns(rng, path, columns)
    map_ = cb.make_calibrator("platt").fit(columns["p"], columns["y"]).map_
    cb.save_map(map_, path / MAP)
    bad = [f"bad.{kind}", name, "odd.parquet", "odd.npz", "none.csv", "*.csv", "."]
    return [good.name] * len(bad) + bad


def _write_odd_columns(rng, path, columns):
    """Write a Parquet file and an archive, of which columns have odd types."""
    some = {name: columns[name].tolist() for name in "ypg"}
    for role in rng.choice(["y", "p", "g"], int(rng.integers(0, 3))):
        change = TYPES[int(rng.integers(len(TYPES)))]
        some[str(role)] = [change(value) for value in columns[str(role)].tolist()]
    pq.write_table(pa.table(some), path / "odd.parquet")
    shape = ((), (-1,), (-1, 1), (1, -1))[int(rng.integers(4))]
    y = columns["y"][0] if shape == () else columns["y"].reshape(shape)
    np.savez(
        path / "odd.npz", y=y, p=columns["p"].astype(rng.choice(["f8", "O", "U9"]))
    )
    if rng.random() < 0.3:
        data = (path / "odd.npz").read_bytes()
        (path / "odd.npz").write_bytes(CHANGES["flipped bits"](rng, data))


def _command(rng, files):
    command = str(rng.choice(list(KNOWN), p=[0.4, 0.12, 0.04, 0.04, 0.15, 0.15, 0.1]))
    arguments = [MAP if rng.random() < 0.9 else files[0]] if command == "apply" else []
    arguments.append(str(rng.choice(files)))
    known = KNOWN[command].split()
    usual = {"--y": "y", "--p": "p", "--methods": "es3", "--method": "es3"}
    chosen = {k: v for k, v in usual.items() if k in known and rng.random() < 0.95}
    for option in rng.choice(known, min(int(rng.integers(0, 4)), len(known)), False):
        chosen[str(option)] = str(rng.choice(OPTIONS[str(option)]))
    if command not in {"evaluate", "compare"} and rng.random() < 0.95:
        chosen["--out"] = str(rng.choice(OUT))
    for option, value in chosen.items():
        arguments += [option, value]
    return command, arguments
