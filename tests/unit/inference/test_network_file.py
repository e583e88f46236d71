"""The network file: exact way there and back, and refusals in one line."""

import json

import numpy as np
import pytest

import lurking as lk
from lurking.errors import DataError, FormatError
from lurking.inference.network import Network

ROWS = [("no", 1, True), ("yes", 2, False), ("yes", 7, True), ("no", None, True), ("no", 1, False)]


@pytest.fixture(scope="module")
def table():
    return lk.Table.from_rows(ROWS, columns=["text", "number", "flag"], weights=[3, 1, 2, 1, 1])


@pytest.fixture
def network(table):
    return lk.fit("h[2] -> *", table, seed=0, restarts=2).network


@pytest.mark.parametrize("method", ["vb", "ml", "map"])
def test_there_and_back_is_exact(table, tmp_path, method):
    network = lk.fit("h[2] -> *; text -> number", table, method=method, seed=0, restarts=2).network
    network.save(tmp_path / "model.json")
    back = Network.load(str(tmp_path / "model.json"))
    assert back == network
    assert back.theta.tobytes() == network.theta.tobytes()
    assert (back.alpha is None) == (method != "vb")
    if method == "vb":
        assert back.alpha.tobytes() == network.alpha.tobytes()
    assert back.dag == network.dag
    assert np.array_equal(back.loglik(table), network.loglik(table))


def test_levels_keep_their_types(network, tmp_path):
    network.save(tmp_path / "model.json")
    levels = Network.load(tmp_path / "model.json").levels
    assert levels == {"h": (0, 1), "text": ("no", "yes"), "number": (1, 2, 7), "flag": (False, True)}
    assert [type(levels[name][0]) for name in ("h", "text", "number", "flag")] == [int, str, int, bool]


def test_text_outside_ascii_and_order_of_parents(tmp_path):
    dag = lk.Dag.from_edges([("é", "y"), ("a", "y")], nodes=["a", "é", "y"], hidden={"é": 2})
    tables = {"a": [0.5, 0.5], "é": [0.25, 0.75], "y": np.asarray([[1, 9], [2, 8], [3, 7], [4, 6]]) / 10}
    network = Network.from_tables(dag, tables, levels={"y": ["ß", "\u2603"]})
    network.save(tmp_path / "model.json")
    back = Network.load(tmp_path / "model.json")
    assert back == network
    assert back.dag.parents("y") == ("é", "a")


def test_the_file_says_what_it_is(network, tmp_path):
    network.save(tmp_path / "model.json")
    content = json.loads((tmp_path / "model.json").read_text(encoding="utf-8"))
    assert (content["format"], content["version"]) == ("lurking-network", 1)
    assert content["about"]["seed"] == 0
    assert set(content["about"]["versions"]) == {"lurking", "numpy", "python"}
    assert len(content["about"]["data_digest"]) == 64
    assert content["about"]["options"]["restarts"] == 2
    assert not (tmp_path / "model.json.part").exists()


def test_a_numpy_seed_can_be_saved(table, tmp_path):
    lk.fit("h[2] -> *", table, seed=np.int64(3), restarts=1).network.save(tmp_path / "model.json")
    assert Network.load(tmp_path / "model.json").about["method"] == "vb"


def damaged(content, change):
    text = json.dumps(content)
    content = json.loads(text)
    change(content)
    return json.dumps(content)


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.pop("nodes"),
        lambda c: c["nodes"].pop(0),
        lambda c: c["nodes"][1].pop("table"),
        lambda c: c["nodes"][1].update(table=[[0.5, 0.5]]),
        lambda c: c["nodes"][1].update(table=[[0.5, 0.6], [0.5, 0.5]]),
        lambda c: c["nodes"][1].update(table=[[-0.5, 1.5], [0.5, 0.5]]),
        lambda c: c["nodes"][1].update(table=[[0.5], [0.5, 0.5]]),
        lambda c: c["nodes"][1].update(table="none"),
        lambda c: c["nodes"][1].update(levels=["no"]),
        lambda c: c["nodes"][1].update(levels=5),
        lambda c: c["nodes"][1].update(parents=["nobody"]),
        lambda c: c["nodes"][0].update(parents=["text"]),
        lambda c: c["nodes"][1].update(name="h"),
        lambda c: c.update(nodes={"a": 1}),
        lambda c: c.update(nodes=None),
        lambda c: c.update(about=[1]),
        lambda c: c["nodes"][1].update(alpha=[[1.0, 2.0]]),
        lambda c: c["nodes"][1].update(alpha=[[-1.0, 2.0], [1.0, 1.0]]),
    ],
)
def test_a_damaged_file_is_refused_in_one_line(network, tmp_path, change):
    path = tmp_path / "model.json"
    network.save(path)
    path.write_text(damaged(json.loads(path.read_text(encoding="utf-8")), change), encoding="utf-8")
    with pytest.raises(FormatError, match="damaged") as caught:
        Network.load(path)
    assert "\n" not in str(caught.value)
    assert "model.json" in str(caught.value)


@pytest.mark.parametrize("version", [0, 3, "1", None])
def test_another_version_is_refused(network, tmp_path, version):
    path = tmp_path / "model.json"
    network.save(path)
    content = {**json.loads(path.read_text(encoding="utf-8")), "version": version}
    path.write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(FormatError, match=f"version {version!r}.*reads versions 1 and 2"):
        Network.load(path)


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", '{"format": "lurking-network"', "[1, 2"])
def test_text_that_is_not_json(tmp_path, text):
    path = tmp_path / "model.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match="is not JSON") as caught:
        Network.load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["{}", "[]", "3", '{"format": "other", "version": 1}'])
def test_json_that_is_no_network(tmp_path, text):
    path = tmp_path / "model.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match="no lurking-network file"):
        Network.load(path)


def test_bytes_that_are_no_text(tmp_path):
    (tmp_path / "model.json").write_bytes(b"\xff\xfe\x00\x81")
    with pytest.raises(FormatError, match="UTF-8"):
        Network.load(tmp_path / "model.json")


def test_places_that_cannot_be_read_or_written(network, tmp_path):
    with pytest.raises(DataError, match="cannot read"):
        Network.load(tmp_path / "missing.json")
    with pytest.raises(DataError, match="cannot write"):
        network.save(tmp_path / "no" / "such" / "folder.json")
