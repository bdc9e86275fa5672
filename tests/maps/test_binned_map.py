import json

import duckdb
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import calibrant as cb
from calibrant.exceptions import MapFormatError, OptionError
from calibrant.maps.binned import BinnedMap
from calibrant.numerics.binning import tabulate, width_edges
from strategies import binary_samples


@given(binary_samples(), st.integers(1, 9), st.sampled_from(["slope-1", "flat"]))
def test_json_round_trip_is_exact(sample, bins, tops):
    map_ = BinnedMap.of_table(tabulate(*sample, None, width_edges(bins)), tops)
    stored = json.loads(json.dumps(map_.to_dict()))
    assert cb.map_from_dict(stored) == map_
    assert hash(cb.map_from_dict(stored)) == hash(map_)


@given(binary_samples(), st.integers(1, 9))
def test_slope_one_tops_pass_through_the_bin_centres(sample, bins):
    table = tabulate(*sample, None, width_edges(bins))
    used = table.weight > 0
    centre = np.clip(
        table.mean_prob[used], table.edges[:-1][used], table.edges[1:][used]
    )
    map_ = BinnedMap.of_table(table, "slope-1")
    inside = np.minimum(centre, np.nextafter(table.edges[1:][used], 0))
    assert_allclose(map_(inside), table.mean_label[used], atol=1e-12)


@pytest.mark.parametrize("tops", ["slope-1", "flat"])
def test_an_empty_bin_is_left_on_the_diagonal(tops):
    table = tabulate(np.array([0.1]), np.array([1.0]), None, width_edges(2))
    map_ = BinnedMap.of_table(table, tops)
    assert_allclose(map_(np.array([0.6, 0.9])), [0.6, 0.9])


@pytest.mark.parametrize("bins", [1, 7])
@pytest.mark.parametrize("tops", ["slope-1", "flat"])
def test_sql_gives_what_the_map_gives(sample, bins, tops):
    p, y = sample
    map_ = cb.make_calibrator(f"es{bins}", tops=tops).fit(p, y).map_
    rows = {'odd "name"': p}
    frame = pd.DataFrame(rows)
    name = 'odd "name"'
    found = duckdb.sql(f"SELECT {map_.to_sql(name)} AS c FROM frame").fetchnumpy()["c"]  # noqa: S608
    assert frame.shape == (500, 1)
    assert_allclose(np.asarray(found, dtype=float), map_.transform(p), atol=1e-12)


GOOD = {"kind": "binned", "edges": [0, 0.5, 1], "intercepts": [0, 0], "slopes": [1, 1]}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "pickle"}, "unknown kind"),
        ({"kind": ["binned"]}, "unknown kind"),
        ({"edges": [0, 0.5]}, "must contain 1 numbers"),
        ({"edges": [0.1, 0.5, 1]}, "from 0 to 1"),
        ({"edges": [0, 2, 1]}, "must not decrease"),
        ({"edges": "0,1"}, "list of numbers"),
        ({"slopes": [1, None]}, "list of numbers"),
        ({"slopes": [1, True]}, "list of numbers"),
        ({"intercepts": [0, float("inf")]}, "finite"),
    ],
)
def test_damaged_maps_are_refused(change, words):
    with pytest.raises(MapFormatError, match=words):
        cb.map_from_dict(GOOD | change)


def test_a_map_must_be_an_object():
    with pytest.raises(MapFormatError, match="JSON object"):
        cb.map_from_dict([1, 2])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "not a JSON file"),
        ("[" * 100_000, "not a JSON file"),
        ("[1]", "is not a map"),
        ('{"format": "calibrant-map", "version": 99, "map": {}}', "version 99"),
        ('{"format": "calibrant-map", "version": 1}', "JSON object"),
    ],
)
def test_damaged_files_are_refused(tmp_path, text, words):
    path = tmp_path / "map.json"
    path.write_text(text)
    with pytest.raises(MapFormatError, match=words):
        cb.load_map(path)


def test_a_failed_save_leaves_the_old_file(tmp_path):
    path = tmp_path / "map.json"
    good = cb.map_from_dict(GOOD)
    cb.save_map(good, path)
    broken = BinnedMap(good.edges, np.array([np.nan, 0.0]), good.slopes)
    with pytest.raises(ValueError, match="JSON"):
        cb.save_map(broken, path)
    assert cb.load_map(path) == good
    assert [file.name for file in tmp_path.iterdir()] == ["map.json"]


def test_saving_a_calibrator_points_to_its_map(sample, tmp_path):
    calibrator = cb.make_calibrator("es5").fit(*sample)
    with pytest.raises(OptionError, match=r"pass calibrator\.map_"):
        cb.save_map(calibrator, tmp_path / "map.json")


def test_a_loaded_map_calibrates(sample, tmp_path):
    calibrator = cb.make_calibrator("es5").fit(*sample)
    cb.save_map(calibrator.map_, tmp_path / "map.json")
    p = np.linspace(0, 1, 50)
    assert_allclose(
        cb.load_map(tmp_path / "map.json").transform(p), calibrator.transform(p)
    )


def test_a_map_without_a_kind_says_so():
    with pytest.raises(MapFormatError, match=r"'kind', as to_dict\(\).* 'edges'.*load"):
        cb.map_from_dict({"edges": [0.0, 1.0]})
