"""The text format: reading, writing, and the star."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lurking.errors import CycleError, StructureError
from lurking.graph.dag import Dag
from lurking.graph.parse import parse_text, quote_name

NAMES = st.one_of(
    st.sampled_from(
        ["a", "b1", "x.y", "->", "<-", "-", "a-", "--", 'say "hi"', "it's", "#1", "a\\n", "new\nline", "é ü"]
    ),
    st.text(min_size=1, max_size=6),
).filter(lambda name: name != "*")


@st.composite
def dags(draw, names=NAMES, star=False):
    nodes = draw(st.lists(names, min_size=1, max_size=6, unique=True))
    if star:
        nodes.append("*")
    order = draw(st.permutations(nodes))
    pairs = [(order[low], order[high]) for low in range(len(order)) for high in range(low + 1, len(order))]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    hidden = draw(st.dictionaries(st.sampled_from([node for node in nodes if node != "*"]), st.integers(1, 12)))
    return Dag(nodes, edges, hidden)


@given(dags())
def test_text_reads_back_to_an_equal_structure(dag):
    assert Dag.parse(dag.to_text()) == dag


@given(dags(star=True))
def test_text_of_open_structures_reads_back_to_an_equal_structure(dag):
    assert dag.is_open
    assert Dag.parse(dag.to_text()) == dag


@given(dags())
def test_repr_evaluates_and_str_is_one_line(dag):
    assert eval(repr(dag), {"Dag": Dag}) == dag
    assert "\n" not in str(dag)
    assert str(dag) == dag.to_text()


@given(st.text("ab12[]\"'->< ,;#*\\\n", max_size=20))
def test_any_text_gives_a_structure_or_a_one_line_error(text):
    try:
        dag = Dag.parse(text)
    except CycleError as error:
        message = repr(error.cycle)  # a quoted name may hold a line break, which the walk prints as it is
    except StructureError as error:
        message = str(error)
    else:
        message = "read"
        assert Dag.parse(dag.to_text()) == dag
    assert message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "nodes", "edges", "hidden"),
    [
        ("a -> b", "ab", ["ab"], {}),
        ("a->b->c", "abc", ["ab", "bc"], {}),
        ("a <- b", "ab", ["ba"], {}),
        ("a <- b -> c", "abc", ["ba", "bc"], {}),
        ("a b -> c, d", "abcd", ["ac", "ad", "bc", "bd"], {}),
        ("c d <- a b", "cdab", ["ac", "ad", "bc", "bd"], {}),
        ("s[2] -> y; s[2] -> z", "syz", ["sy", "sz"], {"s": 2}),
        ("s[ 12 ] -> y", "sy", ["sy"], {"s": 12}),
        ("y <- s[3]", "ys", ["sy"], {"s": 3}),
        ("\n a -> b # the first\r\n;; # nothing\n c\n", "abc", ["ab"], {}),
        ("a; a -> b", "ab", ["ab"], {}),
        ('"a" -> b', "ab", ["ab"], {}),
    ],
)
def test_clauses(text, nodes, edges, hidden):
    parsed = parse_text(text)
    assert parsed.nodes == tuple(nodes)
    assert parsed.edges == tuple((edge[0], edge[1]) for edge in edges)
    assert parsed.hidden == hidden


def test_quoted_names_with_escapes():
    assert parse_text(r'"my column"[2] -> "a \"b\" \\ c\n"').nodes == ("my column", 'a "b" \\ c\n')
    assert parse_text('"a -> b; [x] # ,"').nodes == ("a -> b; [x] # ,",)


@pytest.mark.parametrize(
    ("name", "written"),
    [("y1", "y1"), ("my column", '"my column"'), ('a"b', '"a\\"b"'), ("a->b", '"a->b"'), ("--", '"--"'), ("*", "*")],
)
def test_quote_name(name, written):
    assert quote_name(name) == written


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("s1[2] -> y1 y2 y3; s2[2] -> y2 y3 y4", "s1[2] -> y1 y2 y3; s2[2] -> y2 y3 y4"),
        ("a; b; c", "a; b; c"),
        ("b a; a -> b", "b a; a -> b"),
        ("a b c; b a -> c", "a b c; b a -> c"),
        ("class[3] -> *", "class[3] -> *"),
    ],
)
def test_to_text_is_short(text, written):
    assert Dag.parse(text).to_text() == written


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a -> b; -> c",
            "cannot read the structure at line 1, column 9, near '-> c': an arrow needs a name on its left; "
            "write e.g. 'a -> b'",
        ),
        (
            "a -> b\nc -> ",
            "cannot read the structure at line 2, column 6, after 'a -> b\\nc -> ': an arrow needs a name on its "
            "right; write e.g. 'a -> b'",
        ),
        (
            "a -> ; b",
            "cannot read the structure at line 1, column 6, near '; b': an arrow needs a name on its right; "
            "write e.g. 'a -> b'",
        ),
        (
            "a -> [2]",
            "cannot read the structure at line 1, column 6, near '[2]': brackets give the number of states of the name "
            "before them, e.g. s1[2]",
        ),
        (
            "s[2",
            "cannot read the structure at line 1, column 2, near '[2': brackets hold one whole number after a name, "
            "e.g. s1[2]",
        ),
        (
            'a -> "b',
            "cannot read the structure at line 1, column 6, near '\"b': the double quote is not closed; "
            "put '\"' at the end of the name",
        ),
        (
            "a -> it's",
            'cannot read the structure at line 1, column 8, near "\'s": a name with this character must be in double '
            "quotes",
        ),
        (
            "s[two] -> y",
            "hidden variable 's' has cardinality 'two'; it must be a whole number of at least 1, e.g. s:2",
        ),
        ("s[0] -> y", "hidden variable 's' has cardinality 0; it must be a whole number of at least 1, e.g. s:2"),
        ("s[-3] -> y", "hidden variable 's' has cardinality -3; it must be a whole number of at least 1, e.g. s:2"),
        (
            "s[2] -> y; s[3] -> z",
            "hidden variable 's' has cardinality 2 at its first mention and 3 later in the text; say it once",
        ),
        ('"" -> y', "a node has the empty name ''; every node needs at least one character"),
        (" ; \n # only words", "the structure has no nodes; name at least one, e.g. 's1[2] -> y1 y2'"),
        ("a -> b; a -> b", "the edge 'a' -> 'b' is given twice; give every edge once"),
        (
            "a * -> * b",
            "'*' stands on both sides of one arrow in 'a * -> * b'; it means every column, so every column would "
            "depend on itself: name the columns on one side",
        ),
        ("*[2] -> y", "'*' cannot be hidden: it stands for the observed columns; name a variable instead"),
    ],
)
def test_errors_say_where_and_why(text, message):
    with pytest.raises(StructureError) as caught:
        Dag.parse(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["a --> b", "a-->b", "a <-- b", "a<--b", "a -- b", "a => b", "a <-> b", "a<->b"])
def test_mistyped_arrows_do_not_become_nodes(text):
    with pytest.raises(StructureError, match=r"this is no arrow; write '->' or '<-'"):
        Dag.parse(text)


def test_text_must_be_text():
    with pytest.raises(StructureError, match="parsed from text, not from 3"):
        Dag.parse(3)


def test_brackets_and_hidden_may_agree_but_not_differ():
    assert Dag.parse("s1[2] -> y", hidden={"s1": 2}) == Dag.parse("s1 -> y", hidden={"s1": 2})
    assert dict(Dag.parse("s1[2] -> y; s2 -> y", hidden={"s2": 3}).hidden) == {"s1": 2, "s2": 3}
    with pytest.raises(StructureError) as caught:
        Dag.parse("s1[2] -> y", hidden={"s1": 3})
    assert str(caught.value) == ("hidden variable 's1' has cardinality 2 in the text and 3 in hidden=; say it once")


def test_the_star_is_an_open_node_until_bound():
    dag = Dag.parse("class -> *", hidden={"class": 3})
    assert dag.is_open
    assert dag.nodes == ("class", "*")
    assert dag.parents("*") == ("class",)
    bound = dag.bind(["y2", "y1"])
    assert bound == Dag.parse("class[3] -> y2 y1")
    assert not bound.is_open
    assert bound.bind(["other"]) is bound


def test_named_columns_keep_their_place_and_edges_are_not_repeated():
    dag = Dag.parse("s[2] -> y3; s -> *; t[2] -> y1; u[2] -> *").bind(["y1", "y2", "y3"])
    assert dag.nodes == ("s", "y3", "y1", "y2", "t", "u")
    assert dag.parents("y3") == ("s", "u")
    assert dag.parents("y1") == ("s", "t", "u")
    assert dag.parents("y2") == ("s", "u")


def test_the_star_leaves_out_the_node_itself_and_hidden_columns():
    assert Dag.parse("y1 -> *").bind(["y1", "y2", "y3"]) == Dag.parse("y1 -> y2 y3")
    assert Dag.parse("* -> y1").bind(["y1", "y2", "y3"]) == Dag.parse("y1 y2 y3; y2 y3 -> y1")
    assert Dag.parse("s[2] -> *").bind(["s", "y"]) == Dag.parse("s[2] -> y")


def test_the_bare_star_is_the_independence_model():
    assert Dag.parse("*").bind(["b", "a"]) == Dag(["b", "a"])


def test_a_cycle_by_expansion_is_found_when_bound():
    dag = Dag.parse("y1 -> *; y2 -> *")
    with pytest.raises(CycleError) as caught:
        dag.bind(["y1", "y2"])
    assert caught.value.cycle == ("y1", "y2", "y1")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["y", "y"], "column 'y' is listed twice; list every column once"),
        ("y", "columns= is the text 'y'; it must be a list of names, e.g. ['y1', 'y2']"),
        ([""], "a column has the empty name ''; every column needs at least one character"),
    ],
)
def test_columns_are_checked_when_bound(columns, message):
    with pytest.raises(StructureError) as caught:
        Dag.parse("s[2] -> *").bind(columns)
    assert str(caught.value) == message


def test_open_structures_stay_open_through_other_changes():
    dag = Dag.parse("class[2] -> *; s[2] -> y1; t[2] -> *; lone[2]")
    changed = dag.with_hidden({"class": 4}).rename({"s": "u"}).without("lone")
    expected = Dag.parse("class[4] -> y1 y2; u[2] -> y1; t[2] -> y1 y2")
    bound = changed.bind(["y1", "y2"])
    assert bound.parents("y1") == ("class", "u", "t")
    assert bound.same_structure(expected)
    with pytest.raises(StructureError, match="is not a name but stands for the columns"):
        dag.rename({"*": "x"})
    with pytest.raises(StructureError, match="is not a name but stands for the columns"):
        Dag.parse("a -> b").rename({"a": "*"})


def test_open_structures_with_another_order_of_writing_differ():
    first = Dag.parse("s y *; s -> y; s -> *")
    second = Dag.parse("s y *; s -> *; s -> y")
    assert first != second
    assert first.edges == second.edges


def test_ranges_of_states_stand_for_several_structures():
    from lurking.graph.parse import expand_ranges

    assert expand_ranges("a -> b") == {"": "a -> b"}
    assert expand_ranges("c[2..3] -> *") == {"c=2": "c[2] -> *", "c=3": "c[3] -> *"}
    both = expand_ranges("s[1..2] -> a; t[3..4] -> b")
    assert list(both) == ["s=1, t=3", "s=1, t=4", "s=2, t=3", "s=2, t=4"]
    assert both["s=2, t=3"] == "s[2] -> a; t[3] -> b"
    for text in ("c[0..2] -> a", "c[3..2] -> a", "c[1..2000] -> a"):
        with pytest.raises(StructureError):
            expand_ranges(text)
