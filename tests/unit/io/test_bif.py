"""BIF files: exact values and round trips bit for bit."""

import gzip
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lurking as lk
from lurking.errors import DataError, FormatError
from lurking.inference.network import Network
from lurking.io.bif import format_bif, parse_bif, read_bif, write_bif

# Lauritzen & Spiegelhalter (1988), the tables as published.
ASIA = """\
// the chest clinic
network asia {
  property "source; Lauritzen & Spiegelhalter 1988" ;
}
variable asia   { type discrete [ 2 ] { yes, no }; }
variable tub    { type discrete [ 2 ] { yes, no }; }
variable smoke  { type discrete [ 2 ] { yes, no }; property position = (7, 0) ; }
variable lung   { type discrete [ 2 ] { yes, no }; }
variable bronc  { type discrete [ 2 ] { yes, no }; }
variable either { type discrete [ 2 ] { yes, no }; }
variable xray   { type discrete [ 2 ] { yes, no }; }
variable dysp   { type discrete [ 2 ] { yes, no }; }
probability ( asia ) { table 0.01, 0.99; }
probability ( tub | asia ) { (yes) 0.05, 0.95; (no) 0.01, 0.99; }
probability ( smoke ) { table 0.5, 0.5; }
probability ( lung | smoke ) { (yes) 0.1, 0.9; (no) 0.01, 0.99; }
probability ( bronc | smoke ) { (yes) 0.6, 0.4; (no) 0.3, 0.7; }
probability ( either | lung, tub ) { default 1.0, 0.0; (no, no) 0.0, 1.0; }
probability ( xray | either ) { (yes) 0.98, 0.02; (no) 0.05, 0.95; }
probability ( dysp | bronc, either ) {
  (yes, yes) 0.9, 0.1; /* rows may come
                          in any order */
  (no, yes) 0.7, 0.3;
  (yes, no) 0.8, 0.2;
  (no, no) 0.1, 0.9;
}
"""

# Korb & Nicholson (2010), in the dress of the oldest files: no commas, no bars, quotes, whole tables, blocks mixed.
CANCER = """
network "Cancer" { //5 variables
}
probability ( "Cancer" "Pollution" "Smoker" ) { table 0.03 0.001 0.05 0.02 0.97 0.999 0.95 0.98 ; }
variable "Pollution" { type discrete[2] { "low" "high" }; }
variable "Smoker" { type discrete[2] { "True""False" }; }
variable "Cancer" { type discrete[2] { "True" "False" }; }
probability ( "Pollution" ) { table 0.9 0.1 ; }
probability ( "Smoker" ) { table 0.3 0.7 ; }
variable "Xray" { type discrete[2] { "positive" "negative" }; }
probability ( "Xray" "Cancer" ) { table 0.9 0.2 0.1 0.8 ; property "measured" ; }
variable "Dyspnoea" { type discrete[2] { "True" "False" }; }
probability ( "Dyspnoea" "Cancer" ) { table 0.65 0.3 0.35 0.7 ; }
"""

SMALL = """\
network unknown {
}
variable a {
  type discrete [ 2 ] { no, yes };
}
variable b {
  type discrete [ 3 ] { low, mid, high };
  property note = "; }" ;
}
probability ( a ) {
  table 0.25, 0.75;
}
probability ( b | a ) {
  (no) 0.5, 0.25, 0.25;
  (yes) 0.125, 0.125, 0.75; // last
}
"""


def changed(old, new, text=SMALL):
    """Return the text with its only `old` replaced."""
    assert text.count(old) == 1
    return text.replace(old, new)


def test_asia():
    network = parse_bif(ASIA)
    assert network.dag == lk.Dag.from_edges(
        [
            ("asia", "tub"),
            ("smoke", "lung"),
            ("smoke", "bronc"),
            ("lung", "either"),
            ("tub", "either"),
            ("either", "xray"),
            ("bronc", "dysp"),
            ("either", "dysp"),
        ],
        nodes=["asia", "tub", "smoke", "lung", "bronc", "either", "xray", "dysp"],
    )
    assert set(network.levels.values()) == {("yes", "no")}
    assert network.about == {"name": "asia"}
    assert network.alpha is None
    tables = {name: table.tolist() for name, table in network.tables.items()}
    assert tables["asia"] == [[0.01, 0.99]]
    assert tables["either"] == [[1.0, 0.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    assert tables["dysp"] == [[0.9, 0.1], [0.8, 0.2], [0.7, 0.3], [0.1, 0.9]]
    # p(tub) and p(lung) are independent, so p(either = no) is the product of two sums over one parent each.
    no_tub, no_lung = 0.01 * 0.95 + 0.99 * 0.99, 0.5 * 0.9 + 0.5 * 0.99
    np.testing.assert_allclose(network.joint(["either"]), [1 - no_tub * no_lung, no_tub * no_lung], rtol=1e-14)


def test_the_oldest_dress_and_the_order_of_a_table():
    network = parse_bif(CANCER)
    assert network.dag.nodes == ("Pollution", "Smoker", "Cancer", "Xray", "Dyspnoea")
    assert network.dag.parents("Cancer") == ("Pollution", "Smoker")
    assert network.levels["Smoker"] == ("True", "False")
    # (low, True), (low, False), (high, True), (high, False): the child is slowest in the file and fastest here.
    assert network.tables["Cancer"].tolist() == [[0.03, 0.97], [0.001, 0.999], [0.05, 0.95], [0.02, 0.98]]
    assert network.tables["Dyspnoea"].tolist() == [[0.65, 0.35], [0.3, 0.7]]


def test_a_table_says_the_same_as_rows():
    rows = "(a0, b0) 0.1 0.9; (a0, b1) 0.2 0.8; (a0, b2) 0.3 0.7; (a1, b0) 0.4 0.6; (a1, b1) 0.5 0.5; (a1, b2) 0.6 0.4;"
    table = "table 0.1 0.2 0.3 0.4 0.5 0.6 0.9 0.8 0.7 0.6 0.5 0.4;"
    text = """variable a { type discrete [2] { a0 a1 }; } variable b { type discrete [3] { b0 b1 b2 }; }
    variable x { type discrete [2] { x0 x1 }; }
    probability ( a ) { default .5 .5; } probability ( b ) { () .2 .3 .5; } probability ( x | a, b ) { HERE }"""
    network = parse_bif(text.replace("HERE", rows))
    assert network == parse_bif(text.replace("HERE", table))
    assert network.about == {}
    assert network.tables["a"].tolist() == [[0.5, 0.5]]
    assert network.tables["b"].tolist() == [[0.2, 0.3, 0.5]]
    assert network.tables["x"].tolist() == [[0.1, 0.9], [0.2, 0.8], [0.3, 0.7], [0.4, 0.6], [0.5, 0.5], [0.6, 0.4]]


def test_odd_names_and_levels_stay_as_written():
    text = r"""
    variable 2nd-test.a { type discrete [ 6 ] { <5, 5-12, 12+, 7%, Asy/Patch, >=7.5 }; }
    variable "with blank" { type discrete [ 5 ] { "", "a, b", "say \"no\"", "C:\new\\x", 007 }; }
    probability ( 2nd-test.a ) { table 1 0 0 0 0 0; }
    probability ( "with blank" | 2nd-test.a ) { default 0.2, 0.2 0.2 , 0.2,,0.2; ("12+") 1e0 0.0 0 0E-3 .0; }
    """
    network = parse_bif(text)
    assert network.dag.nodes == ("2nd-test.a", "with blank")
    assert network.levels["2nd-test.a"] == ("<5", "5-12", "12+", "7%", "Asy/Patch", ">=7.5")
    assert network.levels["with blank"] == ("", "a, b", 'say "no"', "C:\\new\\x", "007")
    assert network.tables["with blank"][2].tolist() == [1.0, 0.0, 0.0, 0.0, 0.0]
    assert network.tables["with blank"][5].tolist() == [0.2] * 5
    assert parse_bif(format_bif(network)) == network


def test_comments_are_blanks_everywhere():
    text = SMALL.replace(" ", " /* ( ; */ ").replace("\n", " // it's \"one\n").replace('"; }"', "none")
    assert parse_bif(text) == parse_bif(SMALL)


def test_windows_line_ends():
    assert parse_bif(SMALL.replace("\n", "\r\n")) == parse_bif(SMALL)


@pytest.mark.parametrize("row", ["0.333, 0.333, 0.333", "0.33 0.33 0.33", "0.3333333, 0.3333333, 0.3333333"])
def test_rounded_rows_are_divided_by_their_sum(row):
    network = parse_bif(changed("0.5, 0.25, 0.25", row))
    np.testing.assert_allclose(network.tables["b"][0], [1 / 3] * 3, rtol=1e-15)
    assert network.tables["b"][1].tolist() == [0.125, 0.125, 0.75]


def test_hidden_variables():
    text = changed("yes };", "yes };\n  property lurking_hidden = yes ;")
    network = parse_bif(text)
    assert network.dag == lk.Dag.parse("a[2] -> b")
    assert network.levels == {"a": (0, 1), "b": ("low", "mid", "high")}
    assert network.tables["b"].tolist() == [[0.5, 0.25, 0.25], [0.125, 0.125, 0.75]]
    assert parse_bif(changed("lurking_hidden = yes", '"lurking_hidden=yes"', text)) == network
    assert parse_bif(changed("lurking_hidden = yes", "lurking_hidden = no", text)) == parse_bif(SMALL)


def test_format_is_this_text():
    dag = lk.Dag.parse('class[2] -> "the colour" size; size -> "the colour"')
    tables = {
        "class": [[0.25, 0.75]],
        "the colour": [[0.1, 0.9], [0.5, 0.5], [1.0, 0.0], [1e-05, 0.99999]],
        "size": [[0.2, 0.8], [0.3, 0.7]],
    }
    network = Network.from_tables(dag, tables, {"the colour": ("red", "dark blue"), "size": (1, 2)})
    text = """\
network unknown {
}
variable class {
  type discrete [ 2 ] { 0, 1 };
  property lurking_hidden = yes ;
}
variable "the colour" {
  type discrete [ 2 ] { red, "dark blue" };
}
variable size {
  type discrete [ 2 ] { 1, 2 };
}
probability ( class ) {
  table 0.25, 0.75;
}
probability ( "the colour" | class, size ) {
  (0, 1) 0.1, 0.9;
  (0, 2) 0.5, 0.5;
  (1, 1) 1.0, 0.0;
  (1, 2) 1e-05, 0.99999;
}
probability ( size | class ) {
  (0) 0.2, 0.8;
  (1) 0.3, 0.7;
}
"""
    assert format_bif(network) == text
    assert parse_bif(text).levels == {"class": (0, 1), "the colour": ("red", "dark blue"), "size": ("1", "2")}
    assert parse_bif(text).dag == dag
    np.testing.assert_array_equal(parse_bif(text).theta, network.theta)


def test_the_name_of_the_network_is_kept():
    network = parse_bif(changed("unknown", '"my network"'))
    assert network.about == {"name": "my network"}
    assert format_bif(network).startswith('network "my network" {\n')


@st.composite
def networks(draw):
    """Return a network with names and levels of any characters, zeros, and rows that sum to 1 only up to rounding."""
    texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=4) | st.text(' ,;|{}()[]"/*\\\n-.0', max_size=3)
    names = draw(st.lists(texts.filter(lambda name: name not in ("", "*")), min_size=1, max_size=4, unique=True))
    pairs = draw(st.permutations(list(itertools.combinations(names, 2))))
    edges = [pair for pair in pairs if draw(st.booleans())]
    levels = {name: tuple(draw(st.lists(texts, min_size=1, max_size=3, unique=True))) for name in names}
    hidden = {name: len(levels[name]) for name in names if draw(st.booleans())}
    levels |= {name: tuple(range(size)) for name, size in hidden.items()}
    dag = lk.Dag.from_edges(edges, nodes=draw(st.permutations(names)), hidden=hidden)
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    tables = {}
    for name in names:
        rows = int(np.prod([len(levels[parent]) for parent in dag.parents(name)]))
        weights = generator.standard_gamma(0.1, (rows, len(levels[name])))
        weights[:, 0] += 1e-9
        tables[name] = weights / weights.sum(axis=1, keepdims=True)
    return Network.from_tables(dag, tables, levels)


@given(networks())
def test_what_is_written_is_read_bit_for_bit(network):
    back = parse_bif(format_bif(network))
    assert back == network
    assert back.theta.tobytes() == network.theta.tobytes()


def test_rows_that_sum_to_one_up_to_rounding_are_kept():
    row = [0.1] * 10
    assert sum(row) != 1.0
    levels = " ".join("abcdefghij")
    text = (
        f"variable x {{ type discrete [10] {{ {levels} }}; }} probability (x) {{ table {' '.join(map(repr, row))}; }}"
    )
    assert parse_bif(text).tables["x"].tolist() == [row]


def test_levels_that_are_the_same_text_are_refused():
    dag = lk.Dag.from_edges([], nodes=["x"])
    network = Network.from_tables(dag, {"x": [[0.5, 0.5]]}, {"x": (1, "1")})
    with pytest.raises(FormatError, match=r"levels 1 and '1' of 'x' are the same text"):
        format_bif(network)


def test_an_open_structure_is_refused():
    network = Network.from_tables(lk.Dag.parse("c -> *"), {"c": [[1.0]], "*": [[1.0]]})
    with pytest.raises(FormatError, match="'\\*'"):
        format_bif(network)


@pytest.mark.parametrize("ending", [".bif", ".bif.gz", ".BIF.GZ"])
def test_files_there_and_back(tmp_path, ending):
    path = tmp_path / f"asia{ending}"
    network = parse_bif(ASIA)
    write_bif(network, path)
    assert read_bif(path) == read_bif(str(path)) == network
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
    is_compressed = path.read_bytes()[:2] == b"\x1f\x8b"
    assert is_compressed == ending.lower().endswith(".gz")
    first = path.read_bytes()
    write_bif(network, path)
    assert path.read_bytes() == first


def test_a_byte_order_mark_is_no_part_of_the_text(tmp_path):
    path = tmp_path / "small.bif"
    path.write_text(SMALL, encoding="utf-8-sig")
    assert read_bif(path) == parse_bif(SMALL)


def test_line_ends_inside_names_are_kept_by_files(tmp_path):
    network = parse_bif('variable "a\r\nb" { type discrete [1] { "\r" }; } probability ("a\r\nb") { table 1; }')
    write_bif(network, tmp_path / "odd.bif")
    assert read_bif(tmp_path / "odd.bif") == network


def test_errors_of_a_file_name_the_file(tmp_path):
    path = tmp_path / "small.bif"
    path.write_text(changed("[ 2 ]", "[ 3 ]"), encoding="utf-8")
    with pytest.raises(FormatError, match=r"small\.bif', line 4, column 19: "):
        read_bif(path)
    for mark in (b"", b"\xef\xbb\xbf"):
        path.write_bytes(mark + changed("low", "f\xfcr").encode("latin-1"))
        with pytest.raises(FormatError, match=r"small\.bif', line 7, column 26: .*; save the file as UTF-8"):
            read_bif(path)
    with pytest.raises(DataError, match=r"cannot read .*missing\.bif'"):
        read_bif(tmp_path / "missing.bif")


def test_files_that_are_not_gzip(tmp_path):
    path = tmp_path / "small.bif.gz"
    whole = gzip.compress(SMALL.encode())
    for data in (SMALL.encode(), whole[:-20], whole[:30] + b"xxxx" + whole[34:]):
        path.write_bytes(data)
        with pytest.raises(FormatError, match=r"small\.bif\.gz' is no gzip file, or is cut short"):
            read_bif(path)


def test_a_place_that_cannot_be_written(tmp_path):
    network = parse_bif(SMALL)
    with pytest.raises(DataError, match=r"cannot write .*; choose another place"):
        write_bif(network, tmp_path / "no such folder" / "small.bif")
    (tmp_path / "folder.bif").mkdir()
    with pytest.raises(DataError, match="cannot write"):
        write_bif(network, tmp_path / "folder.bif")
    assert [file.name for file in tmp_path.iterdir()] == ["folder.bif"]


def test_half_a_character_cannot_be_written(tmp_path):
    network = Network.from_tables(lk.Dag(["x"]), {"x": [[1.0]]}, {"x": ("\ud800",)})
    with pytest.raises(FormatError, match=r"'\\ud800', which UTF-8 cannot write"):
        write_bif(network, tmp_path / "x.bif")
    assert list(tmp_path.iterdir()) == []
