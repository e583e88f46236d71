"""networkx graphs, model strings, Graphviz source and the drawing."""

from xml.etree import ElementTree as ET

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lurking.errors import CycleError, StructureError
from lurking.graph.dag import Dag

SVG = "{http://www.w3.org/2000/svg}"


@st.composite
def dags(draw):
    nodes = draw(
        st.lists(st.text("abc xyz", min_size=1, max_size=3).map(str.strip).filter(bool), min_size=1, unique=True)
    )
    order = draw(st.permutations(nodes))
    pairs = [(order[low], order[high]) for low in range(len(order)) for high in range(low + 1, len(order))]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True, max_size=10)) if pairs else []
    return Dag(nodes, edges, draw(st.dictionaries(st.sampled_from(nodes), st.integers(1, 5))))


@given(dags())
def test_networkx_there_and_back(dag):
    assert Dag.from_networkx(dag.to_networkx()) == dag


@given(dags())
def test_modelstring_there_and_back_with_hidden_given_again(dag):
    assert Dag.from_modelstring(dag.to_modelstring(), hidden=dag.hidden) == dag


def test_networkx_attributes():
    graph = Dag.parse("s[3] -> y").to_networkx()
    assert dict(graph.nodes(data=True)) == {"s": {"hidden": True, "cardinality": 3}, "y": {"hidden": False}}
    assert list(graph.edges) == [("s", "y")]


def test_networkx_with_hidden_given():
    graph = nx.DiGraph([("s", "y")])
    assert Dag.from_networkx(graph, hidden={"s": 2}) == Dag.parse("s[2] -> y")


@pytest.mark.parametrize(
    ("graph", "message"),
    [
        (nx.Graph([("a", "b")]), "a structure needs a networkx DiGraph, not a Graph; build one with nx.DiGraph(...)"),
        (
            nx.MultiDiGraph([("a", "b")]),
            "a structure needs a networkx DiGraph, not a MultiDiGraph; build one with nx.DiGraph(...)",
        ),
        ("a", "a structure needs a networkx DiGraph, not a str; build one with nx.DiGraph(...)"),
        (
            nx.DiGraph([(1, 2)]),
            "node 1 is not text; names of nodes must be str, e.g. nx.relabel_nodes(graph, str)",
        ),
    ],
)
def test_networkx_graphs_that_are_no_structure(graph, message):
    with pytest.raises(StructureError) as caught:
        Dag.from_networkx(graph)
    assert str(caught.value) == message


def test_networkx_hidden_attributes_are_checked():
    graph = nx.DiGraph([("s", "y")])
    graph.nodes["s"]["hidden"] = True
    with pytest.raises(StructureError, match="node 's' is marked hidden without a cardinality"):
        Dag.from_networkx(graph)
    graph.nodes["s"]["cardinality"] = 2
    with pytest.raises(StructureError, match="cardinality 2 in the node attributes and 3 in hidden="):
        Dag.from_networkx(graph, hidden={"s": 3})


def test_networkx_cycle():
    with pytest.raises(CycleError, match="a -> b -> a"):
        Dag.from_networkx(nx.DiGraph([("a", "b"), ("b", "a")]))


def test_modelstring_is_that_of_bnlearn():
    dag = Dag.parse("A C B; C A -> B")
    assert dag.to_modelstring() == "[A][C][B|C:A]"
    assert Dag.from_modelstring(" [A] [C][ B | C : A ]\n") == dag
    assert Dag.from_modelstring("[B|A][A]").nodes == ("B", "A")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[A][B",
            "cannot read the model string at position 4, near '[B'; every node is written [name] or "
            "[name|parent:parent]",
        ),
        (
            "[Apple][B|Aple]",
            "[B|...] names the parent 'Aple', which has no bracket of its own (did you mean 'Apple'?); add [Aple] or "
            "correct the name",
        ),
        ("[A][A]", "node 'A' is listed twice; list every node once"),
        ("[]", "a node has the empty name ''; every node needs at least one character"),
        ("", "the structure has no nodes; name at least one, e.g. 's1[2] -> y1 y2'"),
        (7, "a model string must be text, not 7; write e.g. '[A][B|A]'"),
    ],
)
def test_modelstrings_that_cannot_be_read(text, message):
    with pytest.raises(StructureError) as caught:
        Dag.from_modelstring(text)
    assert str(caught.value) == message


@pytest.mark.parametrize("name", ["a:b", "a|b", "[a", "a]", " a"])
def test_names_a_modelstring_cannot_hold(name):
    with pytest.raises(StructureError, match="cannot stand in a model string"):
        Dag([name]).to_modelstring()


def test_dot_source():
    assert Dag.parse('s[2] -> "say \\"y\\"" "back\\\\slash"').to_dot() == (
        "digraph {\n"
        '  "s" [label="s\\n2", style=dashed];\n'
        '  "say \\"y\\"";\n'
        '  "back\\\\slash";\n'
        '  "s" -> "say \\"y\\"";\n'
        '  "s" -> "back\\\\slash";\n'
        "}\n"
    )


def test_html_is_a_well_formed_drawing():
    drawing = ET.fromstring(Dag.parse('s[2] -> "<y> & z" x; x -> w')._repr_html_())
    boxes, texts = drawing.findall(f"{SVG}rect"), drawing.findall(f"{SVG}text")
    assert [text.text for text in texts] == ["s [2]", "<y> & z", "x", "w"]
    assert ["stroke-dasharray" in box.attrib for box in boxes] == [True, False, False, False]
    assert len(drawing.findall(f"{SVG}line")) == 3
    heights = [float(box.attrib["y"]) for box in boxes]
    assert heights[0] < heights[1] == heights[2] < heights[3]
    for box in boxes:
        assert float(box.attrib["x"]) >= 0
        assert float(box.attrib["x"]) + float(box.attrib["width"]) <= float(drawing.attrib["width"])
        assert float(box.attrib["y"]) + float(box.attrib["height"]) <= float(drawing.attrib["height"])
