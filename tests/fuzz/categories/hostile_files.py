"""Damaged and odd files are refused in words; engines that read one read the same."""

import gzip

import numpy as np

import calibrant as cb
from calibrant.exceptions import CalibrantError
from fuzz.tables import WRITERS, assert_same_frame, folder, table

CELLS = ("+0.5", " 0.5", "0.5 ", '"0.5"', '" "', "", "5e-1", ".5", "1.", "1e400", "-0")
CELLS += (
    "nan",
    "NaN",
    "inf",
    "-inf",
    "NULL",
    "NA",
    "0,5",
    "0x1",
    "\u0660.\u0665",
    "true",
    "½",
)
CELLS += ("1_0", "50%", "0.5\x00", "'0.5'", '"0.5', '0"5', "1e-400", "9" * 400, "--")


def _line(rng, data, change):
    """Change one line of a text file, the header left alone."""
    lines = data.split(b"\n")
    row = int(rng.integers(1, max(len(lines) - 1, 2)))
    if row < len(lines):
        lines[row] = change(lines[row])
    return b"\n".join(lines)


def _cell(rng, data):
    def change(line):
        fields = line.split(b",")
        fields[int(rng.integers(len(fields)))] = str(rng.choice(CELLS)).encode()
        return b",".join(fields)

    return _line(rng, data, change)


def _spliced(rng, data, what):
    place = int(rng.integers(len(data) + 1))
    return data[:place] + what + data[place:]


def _flipped(rng, data):
    changed = bytearray(data)
    for place in rng.integers(0, len(data), int(rng.integers(1, 4))):
        changed[place] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _header(data, change):
    first, _, rest = data.partition(b"\n")
    return change(first) + b"\n" + rest


HARMLESS = {
    "nothing": lambda _, data: data,
    "a byte-order mark": lambda _, data: b"\xef\xbb\xbf" + data,
    "Windows lines": lambda _, data: data.replace(b"\r\n", b"\n").replace(
        b"\n", b"\r\n"
    ),
    "no last line end": lambda _, data: data.rstrip(b"\r\n"),
}
CHANGES = {
    "a cell": _cell,
    "cut": lambda rng, data: data[: int(rng.integers(len(data) + 1))],
    "flipped bits": _flipped,
    "a NUL": lambda rng, data: _spliced(rng, data, b"\0"),
    "Latin-1": lambda rng, data: _spliced(rng, data, b"\xe4"),
    "UTF-16": lambda _, data: data.decode("utf-8", "replace").encode("utf-16"),
    "old Mac lines": lambda _, data: data.replace(b"\r\n", b"\n").replace(b"\n", b"\r"),
    "a long line": lambda rng, data: _line(rng, data, lambda line: line + b",7"),
    "a short line": lambda rng, data: _line(
        rng, data, lambda line: line.rpartition(b",")[0]
    ),
    "an empty line": lambda rng, data: _line(rng, data, lambda _: b""),
    "a blank line": lambda rng, data: _line(rng, data, lambda _: b"  "),
    "a comment": lambda rng, data: _line(rng, data, lambda line: b"#" + line),
    "a quote": lambda rng, data: _spliced(rng, data, b'"'),
    "the header only": lambda _, data: data.partition(b"\n")[0] + b"\n",
    "the header twice": lambda _, data: _header(
        data, lambda first: first + b"\n" + first
    ),
    "a name twice": lambda _, data: _header(data, lambda f: f.replace(b"q", b"p")),
    "an empty name": lambda _, data: _header(data, lambda f: f.replace(b"q", b"")),
    "no header": lambda _, data: data.partition(b"\n")[2],
    "semicolons": lambda _, data: data.replace(b",", b";"),
    "packed": lambda _, data: gzip.compress(data, mtime=0),
    "nothing at all": lambda *_: b"",
}


def case(rng):
    columns = table(rng, least=2, most=40)
    columns["y"][: columns["y"].size // 2] = 0  # so that y alone need not tell
    settings = {"y": "y", "p": "p", "bad_rows": str(rng.choice(["error", "drop"]))}
    if rng.random() < 0.3:
        settings["by"] = "g"
    if rng.random() < 0.2:
        _check_harmless(rng, columns, settings)
    else:
        _check_damaged(rng, columns, settings)


def _check_harmless(rng, columns, settings):
    """What means nothing changes nothing."""
    change = str(rng.choice(list(HARMLESS)))
    with folder() as path:
        kind = str(rng.choice(["csv", "tsv"]))
        whole = WRITERS[kind](path / f"whole.{kind}", columns)
        wanted = _result(whole, "memory", settings)
        other = path / f"rows.{kind}"
        other.write_bytes(HARMLESS[change](rng, whole.read_bytes()))
        for engine in ("memory", "duckdb"):
            found = _result(other, engine, settings)
            told = f"{change}, {engine}, {settings}: {found!r}"
            assert_same_frame(found.frame(), wanted.frame(), told)


def _check_damaged(rng, columns, settings):
    kind = str(rng.choice(["csv", "csv", "csv", "tsv", "jsonl", "parquet"]))
    changes = [str(c) for c in rng.choice(list(CHANGES), int(rng.integers(1, 3)))]
    with folder() as path:
        data = WRITERS[kind](path / f"rows.{kind}", columns).read_bytes()
        for change in changes:
            data = CHANGES[change](rng, data) if data else data
        ending = str(rng.choice(["csv", "parquet", "jsonl", "npz", "csv.gz", "txt"]))
        name = f"rows.{kind if rng.random() < 0.8 else ending}"
        (path / name).write_bytes(data)
        found = {e: _result(path / name, e, settings) for e in ("memory", "duckdb")}
    told = f"{name}, {changes}, {settings}: {found}"
    if any(isinstance(one, CalibrantError) for one in found.values()):
        return
    if settings.get("bad_rows") == "drop" and not _is_text(data):
        return  # DuckDB decodes only the columns that it needs
    frames = [one.frame() for one in found.values()]
    assert_same_frame(*frames, told)
    assert np.isfinite(frames[0]["value"]).all(), told


def _is_text(data):
    """Tell whether bytes are UTF-8, as those of binary formats seldom are."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return data[:4] == b"PAR1"
    return True


def _result(path, engine, settings):
    """Return the result or the error that is meant; any other ends the case."""
    try:
        preds = cb.Predictions.from_table(path, engine=engine, **settings)
        return cb.evaluate(preds, methods=["ew1"], confidence=None)
    except CalibrantError as error:
        return error
