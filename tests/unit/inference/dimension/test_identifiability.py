"""Effective dimensions: published values, whole joint tables in fractions, and ranks in floating point."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import lurking as lk
from lurking.errors import TooLarge
from lurking.graph.dag import Dag
from lurking.inference.dimension import identifiability
from lurking.inference.dimension.identifiability import (
    effective_dimension,
    is_cheap,
    numerical_dimension,
    unidentified_note,
)
from lurking.inference.dimension.projections import PRIME, parts_of
from lurking.kernels.reference.modular import rank_modulo
from lurking.models.layout import Layout
from lurking.models.ties import checked_ties


def layout_of(text, **cards):
    dag = Dag.parse(text)
    return Layout(dag, {name: dag.hidden.get(name, cards.get(name, 2)) for name in dag.nodes})


KNOWN = {
    "complete": ("a -> b; a -> c", {}, 5, 5),
    "complete, three states": ("a -> b -> c", {"a": 3, "b": 3, "c": 3}, 14, 14),
    "two classes, one child": ("s[2] -> a", {}, 3, 1),
    # Geiger, Heckerman & Meek (1996): two binary features of a hidden binary class have 3 parameters, not 5.
    "two classes, two children": ("s[2] -> a b", {}, 5, 3),
    "two classes, three children": ("s[2] -> a b c", {}, 7, 7),
    "two classes, four children": ("s[2] -> a b c d", {}, 9, 9),
    "three classes, three children": ("s[3] -> a b c", {}, 11, 7),
    # Goodman (1974): three classes and four binary items have 14 parameters, 15 free cells, and one is not identified.
    "three classes, four children": ("s[3] -> a b c d", {}, 14, 13),
    "four classes, four children": ("s[4] -> a b c d", {}, 19, 15),
    # Goodman (1974), Catalisano, Geramita & Gimigliano (2011): secants of products of lines fill what they can but
    # for one case, the third one of four lines.
    "four classes, five children": ("s[4] -> a b c d e", {}, 23, 23),
    "five classes, five children": ("s[5] -> a b c d e", {}, 29, 29),
    # Rank one less than both counts: matrices 3 × 3 of rank 2, and tensors 3 × 3 × 3 of rank 4 (Strassen 1983).
    "two classes, two children of three states": ("s[2] -> a b", {"a": 3, "b": 3}, 9, 7),
    "four classes, three children of three states": ("s[4] -> a b c", {"a": 3, "b": 3, "c": 3}, 27, 25),
    "one class": ("s[1] -> a b", {}, 2, 2),
    "hidden leaf": ("a -> s[2]", {}, 3, 1),
    "hidden between": ("a -> s[2] -> b", {}, 5, 3),
    "one observed state": ("s[2] -> a b c", {"c": 1}, 5, 3),
}


@pytest.mark.parametrize("name", KNOWN)
def test_known_dimensions(name):
    text, cards, standard, effective = KNOWN[name]
    layout = layout_of(text, **cards)
    assert layout.dimension == standard
    assert effective_dimension(layout) == effective


# Hidden latent class trees, several hidden parents, contexts, hidden variables with observed parents, two components.
VARIETY = (
    "r[2] -> u[2] v[2]; u -> a b; v -> c d",
    "r[3] -> u[2] v[2]; u -> a b; v -> c d",
    "r[2] -> u[3] v[2]; u -> a b; v -> c d",
    "s[2] -> a b c; t[2] -> b c d",
    "s[2] -> a b; t[2] -> b c; a -> c",
    "x -> s[2]; s -> a b; x -> a",
    "x -> s[2]; z -> s; s -> a b c",
    "s[2] -> a b; t[2] -> c d; b -> c; a -> d",
    "s[3] -> a b c; s -> t[2]; a -> b",
    "a -> b; b -> c; s[2] -> c d; u[2]",
    "s[2] -> a; a -> b; s -> b",
)


def rank_in_fractions(layout, seed):
    """Rank of ∂p(y)/∂θ over all cells y: every joint state is enumerated, elimination is done with fractions."""
    generator = np.random.default_rng(seed)
    theta = [Fraction(0)] * layout.size
    starts = layout.row_start
    for begin, end in itertools.pairwise(starts):
        parts = [int(x) for x in generator.integers(1, 30, end - begin)]
        theta[begin:end] = [Fraction(x, sum(parts)) for x in parts]
    cells = {}
    for states in itertools.product(*map(range, layout.cardinalities)):
        places = [
            layout.offsets[j] + sum(stride * states[v] for v, stride in layout.strides[j].items())
            for j in range(len(states))
        ]
        observed = tuple(s for s, name in zip(states, layout.nodes, strict=True) if name not in layout.dag.hidden)
        gradient = cells.setdefault(observed, [Fraction(0)] * layout.size)
        for j, place in enumerate(places):
            gradient[place] += math.prod(theta[other] for k, other in enumerate(places) if k != j)
    rows = [
        [row[k] - row[end - 1] for begin, end in itertools.pairwise(starts) for k in range(begin, end - 1)]
        for row in cells.values()
    ]
    rank = 0
    for column in range(len(rows[0])):
        pivot = next((row for row in rows if row[column]), None)
        if pivot is not None:
            rows.remove(pivot)
            rows = [
                [a - row[column] / pivot[column] * b for a, b in zip(row, pivot, strict=True)] if row[column] else row
                for row in rows
            ]
            rank += 1
    return rank


@pytest.mark.parametrize("text", VARIETY)
def test_whole_tables_in_fractions_and_in_floating_point(text):
    layout = layout_of(text)
    rank = effective_dimension(layout)
    assert rank == rank_in_fractions(layout, seed=1)
    numerical = numerical_dimension(layout)
    assert numerical.rank == rank
    assert numerical.gap < 1e-6


def test_the_136_structures_of_beal_and_ghahramani():
    """Two binary hidden variables, four observed ones with five states each; some of them in floating point too."""
    short = 0
    for place, dag in enumerate(lk.bipartite(2, ["y1", "y2", "y3", "y4"])):
        layout = Layout(dag, {name: dag.hidden.get(name, 5) for name in dag.nodes})
        rank = effective_dimension(layout)
        short += rank < layout.dimension
        if place % 27 == 5:
            numerical = numerical_dimension(layout)
            assert numerical.rank == rank
            assert numerical.gap < 1e-6
    assert short == 121


def test_it_does_not_depend_on_the_seed():
    layout = layout_of("s[3] -> a b c d")
    assert {effective_dimension(layout, seed) for seed in range(6)} == {13}


def test_the_matrix_of_a_component_has_its_rank():
    layout = layout_of("r[2] -> u[3] a; u -> b c; x -> u; x -> c")
    observed_only, (part,) = parts_of(layout)
    assert observed_only == 1  # x itself
    matrix = part.jacobian(np.random.default_rng(3))
    assert matrix.shape == (part.bound, part.dimension)
    assert matrix.min() >= 0
    assert matrix.max() < PRIME
    assert rank_modulo(matrix.tolist(), PRIME) == effective_dimension(layout) - 1


def test_thirty_two_states_and_sixty_four_items_have_full_rank():
    layout = layout_of("s[32] -> " + " ".join(f"y{k}" for k in range(64)))
    assert effective_dimension(layout) == layout.dimension == 2079
    assert not is_cheap(layout)


def test_rare_parent_configurations_are_not_missed():
    # Each of the 256 rows of y's table is met by few cells of the joint table of 21 columns.
    others = " ".join(f"x{k}" for k in range(7))
    layout = layout_of(
        f"s[2] -> a b c y; {'; '.join(f'{name} -> y' for name in others.split())}; "
        + " ".join(f"z{k};" for k in range(10)).strip(";")
    )
    assert effective_dimension(layout) == layout.dimension


def test_what_is_too_large_is_refused_in_one_line(monkeypatch):
    wide = layout_of("s[200] -> " + " ".join(f"y{k}" for k in range(64)))
    with pytest.raises(TooLarge, match="12999 × 12999") as caught:
        effective_dimension(wide)
    assert "\n" not in str(caught.value)
    assert not is_cheap(wide)
    monkeypatch.setattr(identifiability, "WORK_LIMIT", 10.0)
    with pytest.raises(TooLarge, match="multiplications"):
        effective_dimension(layout_of("s[2] -> a b c"))
    with pytest.raises(TooLarge, match="joint states"):
        numerical_dimension(layout_of("s[2] -> " + " ".join(f"y{k}" for k in range(20))))


def test_it_is_told_where_it_is_cheap_and_differs():
    items = {f"y{k}": [0, 1] for k in range(20)}
    none = lk.Table.from_rows([], list(items), levels=items)
    assert lk.Problem("s[3] -> y0 y1 y2 y3", none).parameters_in_words == "14 parameters, 13 effective"
    assert lk.Problem("s[2] -> y0 y1 y2 y3", none).parameters_in_words == "9 parameters"
    large = lk.Problem("s[32] -> *", none)
    assert large.cheap_effective_dimension is None
    assert large.parameters_in_words == "671 parameters"
    other = lk.Problem("s[32] -> *", none)
    assert other.effective_dimension == other.cheap_effective_dimension == 671


def test_unidentified_note_names_both_numbers_only_if_they_differ():
    note = unidentified_note(14, 13)
    assert note.startswith("14 parameters but effective dimension 13; the parameters are not identified")
    assert unidentified_note(14, 14) is None
    assert unidentified_note(14, None) is None


def test_empty_cells_play_no_part():
    rows = [(0, None, 1, 0), (None, 1, 1, 0), (1, 0, None, 1)]
    table = lk.Table.from_rows(rows, list("abcd"), levels={name: [0, 1] for name in "abcd"})
    assert lk.Problem("s[3] -> a b c d", table).effective_dimension == 13


@pytest.mark.parametrize(
    ("model", "tied", "expected"),
    [
        ("s[2] -> a b c d", [["a", "b"]], None),
        ("s[2] -> a b c d", [["a", "b", "c", "d"]], None),
        ("s[2] -> a b", [["a", "b"]], 2),
        ("s[2] -> a b; t[2] -> c d", [["a", "c"], ["b", "d"]], None),
        ("s[2] -> a b; t[2] -> c d", [["s", "t"], ["a", "c"], ["b", "d"]], 3),
        ("s[2] -> a b; c -> d", [["b", "d"]], None),
        ("a -> b; c -> d", [["b", "d"]], 4),
        # Nothing is seen of h, whose table is that of s.
        ("h[2] -> one; s[2] -> a b c", [["h", "s"]], 7),
        ("s[2] -> t[2]; s -> a b; t -> c d", [["a", "c"], ["b", "d"]], None),
    ],
)
def test_tied_tables_count_once(model, tied, expected):
    """Against the rank in floating point; a symmetric 2 × 2 table has two free cells."""
    dag = lk.Dag.parse(model)
    cards = dict.fromkeys(dag.nodes, 2) | ({"one": 1} if "one" in dag.nodes else {})
    layout = Layout(dag, cards, checked_ties(dag, cards, tied))
    found = effective_dimension(layout)
    assert found == numerical_dimension(layout).rank
    assert found <= layout.dimension
    assert expected is None or found == expected


def test_the_work_of_tied_parts_is_that_of_one_matrix():
    """Forty components that share a table: the rows of all, and their columns, are in one matrix."""
    text = "; ".join(f"s{k}[2] -> a{k} b{k} c{k}" for k in range(40))
    dag = Dag.parse(text)
    cards = dict.fromkeys(dag.nodes, 2)
    (part,) = parts_of(Layout(dag, cards, checked_ties(dag, cards, [[f"s{k}" for k in range(40)]])))[1]
    apart = parts_of(Layout(dag, cards))[1]
    assert (part.rows, part.dimension) == (40 * 7, 1 + 40 * 6)
    assert part.elimination == pytest.approx(280 * 241 * 241 / 3)
    assert part.elimination > 1000 * sum(one.elimination for one in apart)
