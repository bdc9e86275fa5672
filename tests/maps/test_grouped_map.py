"""Maps of groups as values: JSON, SQL, keys."""

import sqlite3

import numpy as np
import pytest
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.exceptions import MapFormatError, OptionError
from calibrant.maps.dialects import DIALECTS
from calibrant.maps.grouped import GroupedMap, group_keys
from calibrant.maps.parametric import BetaMap

COMMON, OWN = BetaMap(1.0, 1.0, 0.5), BetaMap(1.0, 1.0, -0.5)
KEYS = (("it's", "1"), ("back\\slash", None))


@pytest.fixture(scope="module")
def map_():
    certificate = cb.make_calibrator().fit(*cb.datasets.load_binary("bayes"))
    parts = (COMMON, ("site", "year"), KEYS, (OWN, OWN))
    return GroupedMap(*parts, certificate.certificate_)


def test_it_can_be_stored(map_, tmp_path):
    cb.save_map(map_, tmp_path / "map.json")
    assert cb.load_map(tmp_path / "map.json") == map_


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("common", {"kind": "temperature", "temperature": 1.0, "classes": 3}),
        ("by", ["site", 3]),
        ("keys", [["a", "1"]]),
        ("keys", [["a", "1"], ["b"]]),
        ("keys", [["a", "1"], ["b", 2]]),
        ("maps", []),
        ("certificate", None),
    ],
)
def test_damage_is_found(map_, field, value):
    with pytest.raises(MapFormatError):
        cb.map_from_dict(map_.to_dict() | {field: value})


def test_values_are_those_of_the_group(map_):
    groups = np.array([["it's", 1.0], ["back\\slash", None], ["new", 1]], dtype=object)
    p = np.array([0.3, 0.3, 0.3])
    expected = [*OWN(p[:2]), *COMMON(p[:1])]
    assert_allclose(map_(p, groups), expected)
    both = map_.transform(np.column_stack([1.0 - p, p]), groups)
    assert_allclose(both, np.column_stack([1.0 - map_(p, groups), expected]))


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_sql_chooses_by_group(map_, dialect):
    text = map_.to_sql("p", dialect)
    rows = [(0.3, "it's", "1"), (0.3, "back\\slash", None), (0.3, "new", "1")]
    if dialect == "sqlite":
        connection = sqlite3.connect(":memory:")
    else:
        connection = pytest.importorskip("duckdb").connect()
    connection.execute("CREATE TABLE t (p DOUBLE, site VARCHAR, year VARCHAR)")
    connection.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
    found = connection.execute(f"SELECT {text} FROM t").fetchall()  # noqa: S608
    groups = np.array([row[1:] for row in rows], dtype=object)
    expected = map_(np.full(3, 0.3), groups)
    assert_allclose(np.ravel(found), expected, atol=1e-6)


def test_text_is_escaped_as_each_dialect_does():
    """BigQuery and Spark join or refuse doubled apostrophes."""
    equal = {name: one.equals("a", r"it's\n") for name, one in DIALECTS.items()}
    assert equal["ansi"] == r"""CAST("a" AS VARCHAR) = 'it''s\n'"""
    assert equal["bigquery"] == r"""CAST(`a` AS STRING) = 'it\'s\\n'"""
    assert equal["mysql"] == r"""CAST(`a` AS BINARY) = 'it''s\\n'"""


def test_numbers_and_text_name_the_same_group():
    assert group_keys([np.array([7.0, np.nan])]) == group_keys([np.array(["7", None])])


def test_python_is_written_group_by_group(map_):
    with pytest.raises(OptionError, match="of_group"):
        map_.to_python()
    assert "def calibrate" in map_.of_group("it's", 1).to_python()


@pytest.mark.parametrize(
    ("kind", "value", "key"), [("BOOLEAN", "true", "True"), ("DOUBLE", "7", "7")]
)
def test_sql_knows_booleans_and_floating_numbers(map_, kind, value, key):
    """Databases write them otherwise than Python: as true, and as 7.0."""
    one = GroupedMap(COMMON, ("g",), ((key,),), (OWN,), map_.certificate)
    expression = f"SELECT {one.to_sql('p', 'duckdb')} FROM"
    table = f"(SELECT 0.3 AS p, CAST({value} AS {kind}) AS g)"
    found = pytest.importorskip("duckdb").sql(f"{expression} {table}").fetchall()
    assert_allclose(found[0], OWN([0.3]), atol=1e-6)


@pytest.mark.parametrize("field", ["log_loss_gain", "tried"])
def test_damaged_numbers_of_certificates_are_refused(map_, field):
    stored = map_.certificate.to_dict()
    part = stored[field][0] if field == "tried" else stored[field]
    part["weight" if field == "tried" else "low"] = "much"
    with pytest.raises(MapFormatError, match="must be of type float"):
        cb.map_from_dict(map_.to_dict() | {"certificate": stored})


@pytest.mark.parametrize(
    ("text", "value"),
    [("7.0", 7.0), ("7", 7.0), ("7.50", 7.5), ("-0.25", -0.25), ("true", True)],
)
def test_text_of_a_number_names_the_group_of_the_number(text, value):
    """CSV files write numbers as text that Parquet files keep as numbers."""
    assert group_keys([np.array([text])]) == group_keys([np.array([value])])


def test_codes_are_not_numbers():
    codes = ["007", "7", "1.2.3", "1e5", "0.12345678901234567"]
    assert group_keys([np.array(codes)]) == [(code,) for code in codes]


def test_columns_of_groups_have_their_names_in_the_database(map_):
    text = map_.to_sql("p", by=["hospital", "jahr"])
    assert 'CAST("hospital" AS VARCHAR)' in text
    assert '"jahr" IS NULL' in text
    assert "site" not in text
    with pytest.raises(OptionError, match="by must name one column for each of 'site'"):
        map_.to_sql("p", by="hospital")


def test_sql_of_classes_names_the_ways_out():
    p = np.array([[0.7, 0.2, 0.1], [0.2, 0.5, 0.3], [0.1, 0.3, 0.6]] * 20)
    map_ = cb.make_calibrator("temperature").fit(p, np.arange(60) % 3).map_
    with pytest.raises(OptionError, match=r"calibrates 3 classes; .* Use to_python"):
        map_.to_sql("p")
