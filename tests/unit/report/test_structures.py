"""Pictures of structures."""

import lurking as lk
from lurking.report.profiles import save_figure
from lurking.report.structures import HIDDEN_FILL, plot_structure


def boxes(axes):
    return {text.get_text(): text for text in axes.texts if text.get_text()}


def test_every_node_is_drawn_once_and_hidden_ones_are_shaded(tmp_path):
    axes = plot_structure(lk.Dag.parse("h[3] -> a b; a -> b; lonely"), "title")
    drawn = boxes(axes)
    assert set(drawn) == {"h [3]", "a", "b", "lonely"}
    shaded = {name for name, text in drawn.items() if text.get_bbox_patch().get_facecolor()[:3] != (1.0, 1.0, 1.0)}
    assert shaded == {"h [3]"}
    assert HIDDEN_FILL.startswith("#")
    save_figure(axes, str(tmp_path / "s.png"))
    assert (tmp_path / "s.png").read_bytes()[:4] == b"\x89PNG"


def test_children_stand_below_their_parents_and_no_two_nodes_overlap():
    dag = lk.Dag.parse("a -> b c d; b -> d; e -> d; d -> f g h i j k l m n o")
    axes = plot_structure(dag)
    places = {name: text.get_position() for name, text in boxes(axes).items()}
    for parent, child in dag.edges:
        assert places[parent][1] > places[child][1]
    assert len(set(places.values())) == len(dag.nodes)


def test_one_arrow_for_every_arc():
    dag = lk.Dag.parse("a -> b -> c; a -> c")
    axes = plot_structure(dag)
    assert sum(1 for text in axes.texts if not text.get_text()) == len(dag.edges)
