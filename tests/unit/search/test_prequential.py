"""Evidence as a sum of predictions: the chain rule, normalised predictions, the order of rows, refusals."""

import itertools
import math

import numpy as np
import pytest

import lurking as lk
from lurking.errors import FractionalWeights, OptionError, TooLarge, UnknownNameError

LEVELS = {name: [0, 1] for name in "abc"}
ROWS = [(0, 0, 1), (1, 1, 1), (0, 0, 0), (1, 0, 1), (1, 1, 0), (0, 0, 1), (1, 1, 1), (0, 1, None)]
MODELS = {"chain": "a -> b -> c", "class": "s[2] -> a b c", "apart": "a; b; c"}


def table_of(rows=ROWS, weights=None):
    return lk.Table.from_rows(rows, list("abc"), levels=LEVELS, weights=weights)


def test_complete_data_by_hand():
    """Every row is predicted by the Dirichlet posterior means of the rows before it."""
    rows = ROWS[:7]
    result = lk.prequential({"chain": "a -> b", "apart": "a; b"}, table_of(rows), score="exact", checkpoints=range(8))
    assert result.rows.tolist() == list(range(8))

    def predicted(before, row, parents):
        same = [x for x in before if all(x[p] == row[p] for p in parents[1:])]
        return math.log((sum(x[parents[0]] == row[parents[0]] for x in same) + 1.0) / (len(same) + 2.0))

    for i, row in enumerate(rows):
        a, b, given = (predicted(rows[:i], row, places) for places in ((0,), (1,), (1, 0)))
        assert result.increments[0, i] == pytest.approx(a + given)
        assert result.increments[1, i] == pytest.approx(a + b)
    assert [kind.value for kind in result.kinds] == ["exact", "exact"]


def test_predictions_of_a_hidden_class_sum_to_one():
    total = 0.0
    for row in itertools.product([0, 1], repeat=3):
        result = lk.prequential(["s[2] -> a b c"], table_of([*ROWS[:4], row]), score="exact", checkpoints=[4])
        total += math.exp(result.increments[0, -1])
    assert total == pytest.approx(1.0, rel=1e-10)


@pytest.mark.parametrize("score", ["exact", "vb", "cs"])
def test_the_last_value_is_the_score_whatever_the_order(score):
    table = table_of()
    plain = lk.prequential(MODELS, table, score=score, checkpoints=4, seed=3)
    shuffled = lk.prequential(MODELS, table, score=score, checkpoints=4, seed=3, shuffle=True)
    assert shuffled.is_shuffled
    assert not plain.is_shuffled
    for k, (name, model) in enumerate(MODELS.items()):
        value = lk.score(model, table, score, seed=3).log_z
        assert plain.cumulative[k, -1] == shuffled.cumulative[k, -1] == value
        assert plain.names[k] == name
    assert np.all(plain.cumulative[:, 0] == 0.0)
    assert not np.array_equal(plain.cumulative, shuffled.cumulative)
    again = lk.prequential(MODELS, table, score=score, checkpoints=4, seed=3, shuffle=True)
    assert np.array_equal(again.cumulative, shuffled.cumulative)
    # The whole table by way of its first n rows: the same evidence in another order.
    permuted = table_of([ROWS[k] for k in (7, 2, 5, 0, 1, 6, 4, 3)])
    assert lk.score("s[2] -> a b c", permuted, "exact").log_z == pytest.approx(
        lk.score("s[2] -> a b c", table, "exact").log_z, rel=1e-12
    )


def test_weights_stand_for_rows_in_sequence():
    heavy = lk.prequential(MODELS, table_of(ROWS[:3], [2, 0, 3]), score="exact", checkpoints=range(6))
    spelled = [ROWS[0]] * 2 + [ROWS[2]] * 3
    light = lk.prequential(MODELS, table_of(spelled), score="exact", checkpoints=range(6))
    assert heavy.cumulative == pytest.approx(light.cumulative, rel=1e-12)
    with pytest.raises(FractionalWeights, match=r"weight 1.5 is no whole number") as caught:
        lk.prequential(MODELS, table_of(ROWS[:2], [1.0, 1.5]))
    assert "\n" not in str(caught.value)


def test_sampled_values_have_errors():
    result = lk.prequential(["s[2] -> a b c", "a; b; c"], table_of(), score="ais", checkpoints=[4], seed=0)
    assert result.std_errors[0, 1:].min() > 0.0
    assert not result.std_errors[1, :2].any()
    exact = lk.prequential(["s[2] -> a b c", "a; b; c"], table_of(), score="exact", checkpoints=[4])
    assert np.abs(result.cumulative - exact.cumulative).max() < 4.0 * result.std_errors.max()
    assert "s[2] -> a b c std_error" in result.to_frame().columns


def test_an_error_that_is_not_known_is_not_zero():
    options = {"score": "ais", "path": "prior", "chains": 1, "steps": 4, "checkpoints": 1}
    result = lk.prequential(["s[2] -> a b c", "a; b; c"], table_of(), **options)
    assert result.std_errors.tolist() == [[0.0, math.inf], [0.0, 0.0]]


def test_ways_to_look_at_it():
    result = lk.prequential(MODELS, table_of(), score="exact", checkpoints=2)
    frame = result.to_frame()
    assert list(frame.columns) == ["rows", *MODELS]
    assert list(frame["rows"]) == [0, 4, 8]
    assert list(frame["class"]) == list(result.cumulative[1])
    assert result.difference("class", "apart") == pytest.approx(result.cumulative[1] - result.cumulative[2])
    assert result.ranked()[0] == max(MODELS, key=lambda name: result.cumulative[result.index(name), -1])
    assert len(str(result).splitlines()) == 4
    with pytest.raises(ValueError, match="read-only"):
        result.cumulative[0, 0] = 1.0


def test_refusals():
    with pytest.raises(UnknownNameError, match="'bic'; choose from: exact"):
        lk.prequential(MODELS, table_of(), score="bic")
    with pytest.raises(OptionError, match="from 0 to 8"):
        lk.prequential(MODELS, table_of(), checkpoints=[9])
    with pytest.raises(OptionError, match="checkpoints is 0"):
        lk.prequential(MODELS, table_of(), checkpoints=0)
    with pytest.raises(UnknownNameError, match="unknown model 'none'"):
        lk.prequential(MODELS, table_of(), checkpoints=1).difference("none", "apart")
    with pytest.raises(TooLarge, match="was left out"):
        lk.prequential(MODELS, table_of(), score="exact", budget=2, checkpoints=1)


def test_no_rows():
    result = lk.prequential(MODELS, table_of([]), checkpoints=3)
    assert result.rows.tolist() == [0]
    assert not result.cumulative.any()
