"""The posterior over a list of structures, from evidence given by hand."""

import math
from dataclasses import replace

import pytest

import lurking as lk
from lurking.errors import UnknownNameError
from lurking.search.posterior import StructurePosterior


def evidence(log_z, log_aliases=0.0):
    return lk.Evidence(log_z, log_aliases, None, lk.Kind.LOWER_BOUND, "vb")


@pytest.fixture
def posterior():
    texts = ("a -> b; c", "h[2] -> a b; c", "h[2] -> a c; g[2] -> b c; a -> b")
    dags = [lk.Dag.parse(text) for text in texts]
    values = [evidence(-1000.0), evidence(-1000.0 + math.log(2), math.log(2)), evidence(-1000.0 + math.log(5))]
    return StructurePosterior.from_evidence("vb", ["x", "y", "z"], dags, values)


def test_probabilities_far_below_the_smallest_float(posterior):
    assert [c.probability for c in posterior] == pytest.approx([1 / 8, 2 / 8, 5 / 8], abs=1e-12)
    assert [c.corrected_probability for c in posterior] == pytest.approx([1 / 10, 4 / 10, 5 / 10], abs=1e-12)
    assert [c.prior for c in posterior] == pytest.approx([1 / 3] * 3)


def test_best_and_ranking(posterior):
    assert posterior.best.name == "z"
    assert [c.name for c in posterior.ranked()] == ["z", "y", "x"]
    assert posterior["y"].evidence.corrected == pytest.approx(-1000.0 + math.log(4))


def test_ties_keep_the_order_given():
    dags = [lk.Dag.parse("a -> b"), lk.Dag.parse("b -> a")]
    posterior = StructurePosterior.from_evidence("vb", ["x", "y"], dags, [evidence(-3.0), evidence(-3.0)])
    assert posterior.best.name == "x"
    assert [c.name for c in posterior.ranked()] == ["x", "y"]


def test_edges_and_hidden_variables(posterior):
    assert posterior.edge_probability("a", "b") == pytest.approx(6 / 8)
    assert posterior.edge_probability("h", "a") == pytest.approx(7 / 8)
    assert posterior.edge_probability("b", "a") == 0.0
    assert posterior.hidden_probabilities() == pytest.approx({0: 1 / 8, 1: 2 / 8, 2: 5 / 8})


def test_a_hidden_variable_with_one_state_does_not_count_nor_what_is_behind_it():
    texts = ("h[1] -> a b", "h[2] -> a b", "g[2] -> h[1]; h -> a b", "g[2] -> h[1] a b; h -> a b", "h[2] -> g[1]; a b")
    dags = [lk.Dag.parse(text) for text in texts]
    values = [evidence(math.log(weight)) for weight in (1, 2, 4, 8, 16)]
    posterior = StructurePosterior.from_evidence("vb", list("vwxyz"), dags, values)
    # The first, third and fifth are one model without a hidden variable: they share one prior, (1 + 4 + 16) / 3 = 7.
    # The others are one model with a single hidden variable: (2 + 8) / 2 = 5.
    assert posterior.duplicates == (("v", "x", "z"), ("w", "y"))
    assert posterior.hidden_probabilities() == pytest.approx({0: 7 / 12, 1: 5 / 12})


def test_copies_of_a_sampled_structure_vary_together():
    dags = [lk.Dag.parse(text) for text in ("h[2] -> a b", "g[2] -> b a", "a -> b")]
    sampled = replace(evidence(-3.0), std_error=0.5)
    values = [sampled, sampled, evidence(-3.0)]
    twice = StructurePosterior.from_evidence("ais", list("xyz"), dags, values)
    once = StructurePosterior.from_evidence("ais", list("xz"), [dags[0], dags[2]], [values[0], values[2]])
    low, high = twice.probability_ranges(seed=0, draws=20000)[2]
    assert [low, high] == pytest.approx(list(once.probability_ranges(seed=0, draws=20000)[1]), abs=0.01)
    assert list(twice.ranges[0]) == list(twice.ranges[1])


def test_a_value_that_is_not_trusted_leaves_every_probability_open():
    dags = [lk.Dag.parse(text) for text in ("h[2] -> a b", "a -> b", "a; b")]
    doubted = replace(evidence(-3.0), std_error=0.01, status=lk.Status.UNTRUSTED)
    posterior = StructurePosterior.from_evidence("ais", list("xyz"), dags, [doubted, evidence(-50.0), evidence(-53.0)])
    assert posterior.ranges[0].tolist() == [0.0, 1.0]
    assert posterior.ranges[1, 0] == 0.0
    assert posterior.ranges[1, 1] == pytest.approx(1.0 / (1.0 + math.exp(-3.0)))
    frame = posterior.to_frame()
    assert frame["std_error"].isna().all()
    assert frame["evidence_for_best"].tolist()[1:] == ["unknown", "unknown"]


def test_shares_of_large_evidence_sum_to_one():
    dags = [lk.Dag.parse(text) for text in ("a -> b", "h[2] -> a b", "a; b")]
    for base in (-105_466.5524, -987_654_321.125):
        values = [evidence(base), evidence(base - 0.3), evidence(base - 40.0)]
        posterior = StructurePosterior.from_evidence("vb", list("xyz"), dags, values)
        assert math.fsum(posterior.probabilities) == pytest.approx(1.0, abs=4e-16)
        assert max(posterior.hidden_probabilities().values()) <= 1.0


def test_a_single_model_is_certain():
    posterior = StructurePosterior.from_evidence("vb", ["x"], [lk.Dag.parse("a")], [evidence(-9e8)])
    assert posterior.best.probability == 1.0
    assert len(posterior) == 1


def test_a_prior_over_structures_multiplies_the_evidence(posterior):
    dags = [candidate.dag for candidate in posterior]
    values = [candidate.evidence for candidate in posterior]
    weighed = StructurePosterior.from_evidence(
        "vb", ["x", "y", "z"], dags, values, log_prior=[math.log(50), math.log(10), math.log(1)]
    )
    assert [c.prior for c in weighed] == pytest.approx([50 / 61, 10 / 61, 1 / 61])
    assert [c.probability for c in weighed] == pytest.approx([50 / 75, 20 / 75, 5 / 75])
    assert [c.corrected_probability for c in weighed] == pytest.approx([50 / 95, 40 / 95, 5 / 95])
    assert weighed.best.name == "x"
    assert weighed.bayes_factor("z", "x").factor == pytest.approx(5.0)


def test_an_excluded_structure_has_probability_zero(posterior):
    dags = [candidate.dag for candidate in posterior]
    values = [candidate.evidence for candidate in posterior]
    some = StructurePosterior.from_evidence("vb", list("xyz"), dags, values, log_prior=[0.0, 0.0, -math.inf])
    assert some["z"].probability == some["z"].prior == 0.0
    assert [c.name for c in some.ranked()] == ["y", "x", "z"]
    with pytest.raises(lk.LurkingError, match="every structure has prior probability 0"):
        StructurePosterior.from_evidence("vb", list("xyz"), dags, values, log_prior=[-math.inf] * 3)


def test_equal_structures_count_once():
    dags = [lk.Dag.parse(text) for text in ("h[2] -> a b", "b a <- g[2]", "h[3] -> a b", "a -> b")]
    posterior = StructurePosterior.from_evidence("vb", list("wxyz"), dags, [evidence(-3.0)] * 4)
    assert posterior.duplicates == (("w", "x"),)
    assert [c.prior for c in posterior] == pytest.approx([1 / 6, 1 / 6, 1 / 3, 1 / 3])
    assert [c.probability for c in posterior] == pytest.approx([1 / 6, 1 / 6, 1 / 3, 1 / 3])


def test_the_edges_of_matched_hidden_variables():
    texts = ("h[2] -> a b c", "g[2] -> a b c; a -> b", "k[4] -> a c; a -> b", "a -> b; c")
    dags = [lk.Dag.parse(text) for text in texts]
    values = [evidence(math.log(weight)) for weight in (4, 3, 2, 1)]
    posterior = StructurePosterior.from_evidence("vb", list("wxyz"), dags, values)
    edges = posterior.edges()
    assert edges.variables == ("h", "a", "b", "c")
    assert edges.probability("h", "a") == pytest.approx(0.9)
    assert edges.probability("h", "b") == pytest.approx(0.7)
    assert edges.probability("a", "b") == pytest.approx(0.6)
    assert edges.probability("b", "a") == 0.0
    assert posterior.cardinality_probabilities() == {"h": pytest.approx({0: 0.1, 2: 0.7, 4: 0.2})}


def test_barren_hidden_variables_do_not_count_as_there():
    dags = [lk.Dag.parse("h[2] -> a b"), lk.Dag.parse("a -> b; b -> h[2]")]
    posterior = StructurePosterior.from_evidence("vb", ["x", "y"], dags, [evidence(0.0), evidence(math.log(3))])
    assert posterior.cardinality_probabilities() == {"h": pytest.approx({0: 0.75, 2: 0.25})}


def sampled(log_z, error):
    return lk.Evidence(log_z, 0.0, error, lk.Kind.ESTIMATE, "ais")


def test_standard_errors_become_ranges_of_probabilities():
    dags = [lk.Dag.parse("a -> b"), lk.Dag.parse("h[2] -> a b")]
    posterior = StructurePosterior.from_evidence("ais", ["x", "y"], dags, [sampled(-5.0, 0.3), sampled(-6.0, 0.4)])
    # The log odds are normal with mean 1 and standard deviation 0.5, so its ends at two deviations are known.
    low, high = (1 / (1 + math.exp(-odds)) for odds in (1.0 - 1.0, 1.0 + 1.0))
    ranges = posterior.probability_ranges(seed=3, draws=200_000)
    assert ranges[0] == pytest.approx([low, high], abs=0.01)
    assert ranges[1] == pytest.approx([1 - high, 1 - low], abs=0.01)
    assert (posterior.probability_ranges(seed=3) == posterior.probability_ranges(seed=3)).all()
    assert (posterior.probability_ranges(seed=3) != posterior.probability_ranges(seed=4)).any()
    exact = StructurePosterior.from_evidence("vb", ["x", "y"], dags, [evidence(-5.0), evidence(-6.0)])
    assert (exact.ranges[:, 0] == exact.ranges[:, 1]).all()
    unknown = StructurePosterior.from_evidence("ais", ["x", "y"], dags, [sampled(-5.0, math.inf), sampled(-6.0, 0.4)])
    assert unknown.ranges[0] == pytest.approx([0.0, 1.0])


def test_an_error_that_is_not_known_leaves_any_probability():
    dags = [lk.Dag.parse("a; b"), lk.Dag.parse("a -> b")]
    for error in (math.inf, math.nan):
        made = StructurePosterior.from_evidence("ais", ["one", "two"], dags, [sampled(-3.0, 0.1), sampled(-2.0, error)])
        assert made.ranges.tolist() == [[0.0, 1.0], [0.0, 1.0]]


def test_a_candidate_is_found_without_going_through_all(posterior):
    made = replace(posterior, candidates=_Counted(posterior.candidates))
    last = posterior.candidates[-1]
    for _ in range(5):
        assert made[last.name] is last
    assert made.candidates.passes == 1
    with pytest.raises(UnknownNameError, match="model"):
        made["nobody"]


class _Counted(tuple):
    """A tuple that counts how often somebody went through it."""

    passes = 0

    def __iter__(self):
        self.passes += 1
        return super().__iter__()


def test_those_that_do_not_contend_stay_below():
    dags = [lk.Dag.parse(text) for text in ("a -> b", "h[2] -> a b", "h[3] -> a b")]
    values = [evidence(-5.0), sampled(-7.0, 0.1), sampled(-8.0, 0.1)]
    posterior = StructurePosterior.from_evidence(
        "sampled", ["x", "y", "z"], dags, values, contending=[False, True, True], within=10.0
    )
    assert [c.name for c in posterior.ranked()] == ["y", "z", "x"]
    total = 1.0 + math.exp(-1.0) + math.exp(-10.0)
    assert [c.probability for c in posterior] == pytest.approx([math.exp(-10) / total, 1 / total, math.exp(-1) / total])


def test_a_posterior_from_evidence_alone_predicts_nothing(posterior):
    with pytest.raises(lk.LurkingError, match="knows no data"):
        posterior.predict({"a": [0]}, "b")


def test_frame(posterior):
    frame = posterior.to_frame()
    assert list(frame["model"]) == ["z", "y", "x"]
    assert frame["log_bayes_factor"].to_numpy() == pytest.approx([0.0, math.log(2 / 5), math.log(1 / 5)])
    assert list(frame["evidence_for_best"]) == ["", "not worth more than a bare mention", "positive"]


def test_a_frame_says_which_way_the_evidence_goes():
    dags = [lk.Dag.parse(text) for text in ("a -> b", "h[2] -> a b", "a; b")]
    values = [evidence(-5.0), evidence(-4.0), evidence(-9.0)]
    posterior = StructurePosterior.from_evidence("vb", list("xyz"), dags, values, log_prior=[0.0, -3.0, 0.0])
    frame = posterior.to_frame()
    assert list(frame["model"]) == ["x", "y", "z"]
    assert list(frame["log_bayes_factor"]) == pytest.approx([0.0, 1.0, -4.0])
    assert list(frame["evidence_for_best"]) == ["", "against: not worth more than a bare mention", "strong"]
