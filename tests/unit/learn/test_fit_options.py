"""Options of a fit: what is refused, and the sentence that says why."""

import math

import numpy as np
import pytest

import lurking as lk
from lurking.errors import LurkingError, OptionError, PriorError, StructureError, UnknownNameError
from lurking.learn.options import FitOptions

TABLE = lk.Table.from_rows([(0, 0), (0, 1), (1, 1)], columns=["a", "b"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"restarts": 0}, "restarts is 0"),
        ({"restarts": -3}, "restarts is -3"),
        ({"restarts": 2.0}, "restarts is 2.0"),
        ({"restarts": True}, "restarts is True"),
        ({"restarts": "many"}, "restarts must be 'auto' or an integer >= 1, got 'many'"),
        ({"tournament": -1}, "tournament is -1"),
        ({"max_iter": 0}, "max_iter is 0"),
        ({"max_iter": 1.5}, "max_iter is 1.5"),
        ({"max_iter": True}, "max_iter is True"),
        ({"tol": -1e-9}, "tol is -1e-09"),
        ({"tol": math.nan}, "tol is nan"),
        ({"tol": math.inf}, "tol is inf"),
        ({"tol": "small"}, "tol is 'small'"),
        ({"seed": -1}, "seed is -1"),
        ({"seed": 1.5}, "seed is 1.5"),
        ({"seed": True}, "seed is True"),
        ({"seed": "0"}, "seed is '0'"),
        ({"workers": 0}, "workers is 0"),
        ({"workers": 0, "tournament": 4}, "workers is 0"),
        ({"workers": 1.5}, "workers is 1.5"),
    ],
)
def test_a_value_outside_its_rule_is_named_with_the_rule(options, message):
    with pytest.raises(OptionError) as caught:
        lk.fit("h[2] -> *", TABLE, **options)
    assert str(caught.value).startswith(message)
    assert "must be" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("options", [{"restarts": np.int64(2)}, {"max_iter": np.int32(5)}, {"tol": 0}, {"seed": None}])
def test_values_inside_the_rules(options):
    assert np.isfinite(lk.fit("h[2] -> *", TABLE, **options).objective)


def test_an_unknown_option_lists_the_choices():
    with pytest.raises(UnknownNameError) as caught:
        lk.fit("h[2] -> *", TABLE, restart=3)
    assert "did you mean 'restarts'" in str(caught.value)
    assert set(caught.value.choices) == set(FitOptions.names())
    for name in ("restarts", "init", "max_iter", "tol", "accelerate", "seed", "workers", "tournament"):
        assert name in str(caught.value)


def test_an_unknown_method_lists_the_choices():
    with pytest.raises(UnknownNameError, match="choose from: vb, map, map-probability, ml"):
        lk.fit("h[2] -> *", TABLE, method="em")


def test_an_unknown_engine_lists_the_choices():
    with pytest.raises(UnknownNameError, match="auto, enumeration"):
        lk.fit("h[2] -> *", TABLE, engine="fast")


@pytest.mark.parametrize("value", [0, -1.0, math.nan, math.inf, -math.inf, True, "one", None])
def test_pseudo_counts_must_be_positive_and_finite(value):
    with pytest.raises(PriorError, match="positive finite number") as caught:
        lk.fit("h[2] -> *", TABLE, prior=value)
    assert repr(value) in str(caught.value)


def test_the_mode_over_probabilities_needs_pseudo_counts_of_at_least_one():
    with pytest.raises(PriorError, match=r"0\.5 < 1.*use λ ≥ 1, or method 'map'"):
        lk.fit("h[2] -> *", TABLE, method="map-probability", prior=0.5)
    assert np.isfinite(lk.fit("h[2] -> *", TABLE, method="map", prior=0.5).objective)
    assert np.isfinite(lk.fit("h[2] -> *", TABLE, method="map-probability", prior=1.0).objective)


GOOD = {"h": [0.5, 0.5], "a": [[0.2, 0.8], [0.6, 0.4]], "b": [[0.2, 0.8], [0.6, 0.4]]}


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"a": [[0.2, 0.7], [0.6, 0.4]]}, OptionError, "sums to 0.9"),
        ({"a": [[-0.2, 1.2], [0.6, 0.4]]}, OptionError, "negative or non-finite"),
        ({"a": [[math.nan, 0.2], [0.6, 0.4]]}, OptionError, "negative or non-finite"),
        ({"a": [[0.2, 0.8]]}, StructureError, "shape"),
        ({"a": [[0.2, 0.3, 0.5], [0.6, 0.4, 0.0]]}, StructureError, "shape"),
    ],
)
def test_init_must_be_probabilities_of_the_right_shape(change, kind, message):
    with pytest.raises(kind, match=message):
        lk.fit("h[2] -> *", TABLE, init={**GOOD, **change})


def test_init_must_have_every_table():
    with pytest.raises(LurkingError, match="missing"):
        lk.fit("h[2] -> *", TABLE, init={"h": [0.5, 0.5]})


def test_init_that_makes_a_row_impossible_is_refused():
    init = {"h": [0.5, 0.5], "a": [[1.0, 0.0], [1.0, 0.0]], "b": [[0.2, 0.8], [0.6, 0.4]]}
    for method in ("ml", "vb"):
        with pytest.raises(OptionError, match="probability 0"):
            lk.fit("h[2] -> *", TABLE, method=method, init=init, restarts=1)


def test_zeros_in_init_that_the_data_allow_stay_zero_under_ml():
    init = {"h": [0.5, 0.5], "a": [[1.0, 0.0], [0.3, 0.7]], "b": [[0.4, 0.6], [0.6, 0.4]]}
    fit = lk.fit("h[2] -> *", TABLE, method="ml", init=init, restarts=1)
    assert fit.network.tables["a"][0].tolist() == [1.0, 0.0]
    assert np.isfinite(fit.objective)


def test_options_describe_themselves_as_plain_values():
    described = FitOptions(restarts=np.int64(3), tol=0, init=GOOD).describe()
    assert described == {
        "restarts": 3,
        "tournament": 0,
        "max_iter": 1000,
        "tol": 0.0,
        "accelerate": True,
        "optimizer": "em",
        "init": True,
    }
    assert type(described["restarts"]) is int
