"""Pictures of structures."""

import numpy as np
import pytest
from matplotlib.patches import FancyArrowPatch

import lurking as lk
from lurking.errors import LurkingWarning
from lurking.report.fonts import _letters_of, width_in_letters
from lurking.report.profiles import save_figure
from lurking.report.structures import HIDDEN_FILL, plot_structure


def boxes(axes):
    return {text.get_text(): text for text in axes.texts if text.get_text()}


def arrows(axes):
    return [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]


def points_of(arrow):
    """Return points close together along the line of an arrow, (points, 2)."""
    found = []
    for segment, _code in arrow._path_original.iter_bezier():
        found.append(segment(np.linspace(0.0, 1.0, 200)))
    return np.concatenate(found)


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
    assert len(arrows(axes)) == len(dag.edges)


def test_what_has_no_direction_is_drawn_without_a_head():
    axes = plot_structure(lk.Dag.parse("a -> b -> c; d -> c"), lines=[frozenset("ab")])
    styles = [type(arrow.get_arrowstyle()).__name__ for arrow in arrows(axes)]
    assert sorted(styles) == ["Curve", "CurveFilledB", "CurveFilledB"]


PICTURES = [
    "B -> A E G; C -> A D E F; D -> F; G -> A C D E",
    "B -> A E G; C -> E; F -> D; G -> E h1; h1[2] -> A C D F",
    "h[3] -> a b c d e f; a -> b c; b -> d; g[2] -> h e f; x -> y; z",
    "a -> b c d e f g; b -> c d e f g; c -> d e f g; d -> e f g; e -> f g; f -> g",
    "a_long_name -> b c; b -> c; c -> another_long_name; a_long_name -> another_long_name; d -> c",
]


@pytest.mark.parametrize("text", PICTURES)
def test_no_arc_runs_through_a_box_that_it_does_not_belong_to(text):
    dag = lk.Dag.parse(text)
    axes = plot_structure(dag)
    axes.figure.draw_without_rendering()
    into_data = axes.transData.inverted()
    extents = {
        name: box.get_bbox_patch().get_window_extent().transformed(into_data) for name, box in boxes(axes).items()
    }
    labels = {name: f"{name} [{dag.hidden[name]}]" if name in dag.hidden else name for name in dag.nodes}
    for (parent, child), arrow in zip(dag.edges, arrows(axes), strict=True):
        curve = points_of(arrow)
        for name in set(dag.nodes) - {parent, child}:
            box = extents[labels[name]]
            hit = (box.x0 <= curve[:, 0]) & (curve[:, 0] <= box.x1) & (box.y0 <= curve[:, 1]) & (curve[:, 1] <= box.y1)
            assert not hit.any(), f"{parent} -> {child} runs through {name}"


def test_letters_that_no_font_has_are_told_of_once(tmp_path):
    with pytest.warns(LurkingWarning, match="no installed font has the letters \U000f0000 \U000f0001,") as told:
        axes = plot_structure(lk.Dag.parse("h[2] -> \U000f0000 \U000f0001 b"), "title")
    assert len(told) == 1
    save_figure(axes, str(tmp_path / "s.png"))


def test_letters_of_another_installed_font_take_that_one(tmp_path):
    from matplotlib.font_manager import FontProperties, findfont

    # Both come with matplotlib; the second one has U+02EF and the first, the usual one, does not.
    axes = plot_structure(lk.Dag.parse("h[2] -> ˯ b"))
    fonts = [findfont(FontProperties(family=[name])) for name in boxes(axes)["˯"].get_fontfamily()]
    assert chr(0x2EF) in set().union(*(_letters_of(font) for font in fonts))
    save_figure(axes, str(tmp_path / "s.png"))


def test_wide_letters_get_wide_boxes():
    assert width_in_letters("age") == 3
    assert width_in_letters("年齢") == 4
