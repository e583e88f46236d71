"""The ending of a path says which format a network file has."""

import pytest

import lurking as lk
from lurking.errors import DataError, FormatError
from lurking.inference.network import Network
from lurking.io.bif import write_bif
from lurking.io.networks import read_network, write_network

NETWORK = Network.from_tables(
    lk.Dag.parse("class[2] -> colour"),
    {"class": [[0.3, 0.7]], "colour": [[0.1, 0.9], [0.6, 0.4]]},
    {"colour": ("red", "blue")},
)


@pytest.mark.parametrize("name", ["net.bif", "net.bif.gz", "NET.BIF", "v1.2.bif.gz"])
def test_bif_files(tmp_path, name):
    write_bif(NETWORK, tmp_path / name)
    assert read_network(tmp_path / name) == read_network(str(tmp_path / name)) == NETWORK


@pytest.mark.parametrize("name", ["net.json", "net.bif.json"])
def test_files_of_save(tmp_path, name):
    NETWORK.save(tmp_path / name)
    assert read_network(tmp_path / name) == NETWORK


@pytest.mark.parametrize("name", ["net.bif", "net.bif.gz", "net.json", "net.model", "net"])
def test_what_is_written_comes_back(tmp_path, name):
    write_network(NETWORK, tmp_path / name)
    assert read_network(tmp_path / name) == NETWORK
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["net.xml", "net", "net.gz", "bif"])
def test_other_endings_must_hold_what_save_wrote(tmp_path, name):
    (tmp_path / name).write_text("network n { }")
    with pytest.raises(FormatError, match="is not JSON") as caught:
        read_network(tmp_path / name)
    assert repr(str(tmp_path / name)) in str(caught.value)


def test_a_path_that_is_none():
    with pytest.raises(DataError, match="the path is None"):
        read_network(None)


def test_the_reader_of_the_ending_speaks(tmp_path):
    NETWORK.save(tmp_path / "net.bif")
    with pytest.raises(FormatError, match="line 1, column 1"):
        read_network(tmp_path / "net.bif")
    write_bif(NETWORK, tmp_path / "net.json")
    with pytest.raises(FormatError, match="not JSON"):
        read_network(tmp_path / "net.json")
    with pytest.raises(DataError, match="cannot read"):
        read_network(tmp_path / "missing.bif")
