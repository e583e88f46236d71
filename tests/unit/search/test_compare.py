"""`lk.compare`: the same data, side by side."""

import math
from concurrent.futures import Executor, Future, ThreadPoolExecutor

import numpy as np
import pytest

import lurking as lk
from lurking.errors import OptionError, StructureError, UnknownNameError

MODELS = {"one": "c[2] -> a b d e", "two": "c[3] -> a b d e", "none": "a; b; d; e", "chain": "a -> b; b -> d; d -> e"}


def make_table():
    generator = np.random.default_rng(5)
    hidden = generator.random(200) < 0.45
    cells = (generator.random((200, 4)) < np.where(hidden[:, None], 0.85, 0.2)).astype(int)
    return lk.Table.from_array(cells, columns=list("abde"))


TABLE = make_table()


@pytest.fixture(scope="module")
def comparison():
    return lk.compare(MODELS, TABLE, scores=["bic", "cs", "vb"], seed=0, restarts=4)


def test_values_are_those_of_score(comparison):
    for name, text in MODELS.items():
        alone = lk.score(text, TABLE, ["bic", "cs", "vb"], seed=0, restarts=4)
        for score in ("bic", "cs", "vb"):
            evidence = comparison[score][name].evidence
            assert evidence.log_z == alone[score].log_z
            assert evidence.log_aliases == alone[score].log_aliases
            assert evidence.kind is alone[score].kind


@pytest.mark.parametrize("score", ["bic", "cs", "vb"])
def test_probabilities_are_normalised_evidence(comparison, score):
    posterior = comparison[score]
    plain = np.asarray([c.evidence.log_z for c in posterior])
    corrected = plain + np.asarray([c.evidence.log_aliases for c in posterior])
    for values, attribute in ((plain, "probability"), (corrected, "corrected_probability")):
        weights = np.exp(values - values.max())
        assert [getattr(c, attribute) for c in posterior] == pytest.approx(weights / weights.sum(), abs=1e-12)
    assert math.fsum(c.probability for c in posterior) == pytest.approx(1.0, abs=1e-12)
    assert math.fsum(c.corrected_probability for c in posterior) == pytest.approx(1.0, abs=1e-12)
    assert all(c.prior == 0.25 for c in posterior)


def test_correction_is_the_log_number_of_relabelings(comparison):
    aliases = {c.name: c.evidence.log_aliases for c in comparison["vb"]}
    assert aliases == pytest.approx({"one": math.log(2), "two": math.log(6), "none": 0.0, "chain": 0.0})
    assert comparison["vb"]["two"].corrected_probability > comparison["vb"]["two"].probability


def test_ranking_is_by_evidence(comparison):
    for score in comparison.scores:
        ranked = comparison[score].ranked()
        values = [c.evidence.log_z for c in ranked]
        assert values == sorted(values, reverse=True)
        assert comparison[score].best.name == ranked[0].name
    assert comparison["vb"].best.name == "one"


def test_ways_to_look_at_it(comparison):
    assert comparison.scores == ("bic", "cs", "vb")
    header, first, *_ = str(comparison).splitlines()
    assert header.split()[:4] == ["model", "d", "effective", "p(model)"]
    assert first.split()[:3] == ["one", "9", "9"]
    assert not comparison.interrupted
    assert [row.name for row in comparison.rows] == list(MODELS)
    assert [row.dimension for row in comparison.rows] == [9, 14, 4, 7]
    with pytest.raises(UnknownNameError, match="choose from: bic, cs, vb"):
        comparison["ais"]
    with pytest.raises(UnknownNameError, match="choose from: one, two, none, chain"):
        comparison["vb"]["three"]


def test_frame(comparison):
    frame = comparison.to_frame()
    expected = ["model", "structure", "d", "d_effective", "prior"]
    for score in ("bic", "cs", "vb"):
        expected += [
            score,
            f"{score}_corrected",
            f"{score}_std_error",
            f"{score}_status",
            f"{score}_kind",
            f"{score}_settled",
            f"{score}_probability",
            f"{score}_corrected_probability",
            f"{score}_log_bayes_factor",
        ]
    assert list(frame.columns) == expected
    assert list(frame["model"]) == list(MODELS)
    assert list(frame["d"]) == [9, 14, 4, 7]
    assert list(frame["d_effective"]) == [9, 13, 4, 7]
    assert frame["vb_corrected"].to_numpy() - frame["vb"].to_numpy() == pytest.approx(
        [math.log(2), math.log(6), 0.0, 0.0]
    )
    assert list(frame["vb_kind"]) == ["lower_bound", "lower_bound", "exact", "exact"]
    assert [lk.Dag.parse(text) for text in frame["structure"]] == [row.dag for row in comparison.rows]


def test_mixed_kinds_are_flagged(comparison):
    (flagged,) = [note for note in comparison.warnings if "differ in kind" in note]
    assert set(flagged.removeprefix("under ").partition(" the values")[0].split(" and ")) == {"cs", "vb"}
    assert "lower_bound: 'one', 'two'" in flagged
    assert "exact: 'none', 'chain'" in flagged


def test_an_order_by_bounds_is_told_and_what_settles_it():
    models = {"two": "c[2] -> *", "three": "c[3] -> *"}
    for score, word in (("vb", "lower bound"), ("bic", "many rows")):
        notes = lk.compare(models, TABLE, scores=score, seed=0).warnings
        (told,) = (note for note in notes if note.startswith(f"'two' is ahead of 'three' by {score}: "))
        assert word in told
        assert "rescore=True" in told
    for options in ({"rescore": False}, {"within": 0.01}, {"restarts": 2, "rescore": True, "target": 0.5}):
        assert not any("is ahead of" in note for note in lk.compare(models, TABLE, seed=0, **options).warnings)


@pytest.mark.parametrize("other", ["k[2] -> a b d e", "e d b a <- c[2]"])
def test_one_structure_given_twice_is_flagged(other):
    comparison = lk.compare({"first": "c[2] -> a b d e", "second": other}, TABLE, seed=0, restarts=2)
    assert any("'first' and 'second' are the same model: they differ only" in note for note in comparison.warnings)


@pytest.mark.parametrize("prune", [True, False])
@pytest.mark.parametrize("prior", [("edges", 0.5), ("edge-probability", 0.2), ("parameters", 0.5), ("hidden", 0.5)])
def test_structure_priors_do_not_see_barren_hidden_variables(prior, prune):
    models = {"plain": "c[2] -> a b d e", "more": "c[2] -> a b d e; a b -> g[2]"}
    found = lk.compare(models, TABLE, seed=0, restarts=2, structure_prior=prior, prune=prune)
    assert [c.prior for c in found.posterior] == pytest.approx([0.5, 0.5])


def test_copies_of_one_structure_are_scored_once():
    models = {"x": "c[2] -> a b d e", "y": "e d b a <- k[2]", "z": "c[3] -> a b d e"}
    found = lk.compare(models, TABLE, scores=["vb", "ais"], seed=0, restarts=2, target=0.5)
    x, y, z = found.rows
    assert x.evidences == y.evidences
    assert x.evidences != z.evidences
    assert x.evidences["ais"].std_error > 0.0
    assert [str(row.dag) for row in found.rows] == [str(lk.Dag.parse(text)) for text in models.values()]
    assert [row.name for row in found.rows] == list(models)


def test_names_of_hidden_variables_matter_to_tables_of_a_prior():
    counts = {name: np.ones((2, len(TABLE[name].levels))) for name in TABLE.columns}
    prior = lk.Prior.from_counts({"c": [[5.0, 5.0]], "k": [[1.0, 1.0]], **counts})
    found = lk.compare({"x": "c[2] -> a b d e", "y": "k[2] -> a b d e"}, TABLE, seed=0, prior=prior)
    assert found.rows[0].evidences["vb"].log_z != found.rows[1].evidences["vb"].log_z


def test_equal_texts_get_different_names():
    comparison = lk.compare(["a -> b; d; e", "a -> b; d; e"], TABLE)
    names = [row.name for row in comparison.rows]
    assert names[0] == "a -> b; d; e"
    assert len(set(names)) == 2


def test_climbs_that_did_not_converge_are_flagged():
    comparison = lk.compare({"late": "c[3] -> *"}, TABLE, max_iter=2, seed=0)
    assert any("did not converge for 'late'" in note for note in comparison.warnings)


def test_models_of_different_columns_are_refused():
    with pytest.raises(StructureError, match=r"'first' and 'second' do not explain the same columns.*\['e'\]"):
        lk.compare({"first": "c[2] -> a b d e", "second": "c[2] -> a b d"}, TABLE)
    with pytest.raises(StructureError, match="same columns"):
        lk.compare(["c[2] -> *", "a -> b"], TABLE)


@pytest.mark.parametrize(
    ("models", "scores", "error"),
    [
        ("c[2] -> *", ["vb"], "takes a list"),
        (lk.Dag.parse("c[2] -> *"), ["vb"], "takes a list"),
        ([], ["vb"], "no model"),
        ({}, ["vb"], "no model"),
        (["c[2] -> *"], [], "no score"),
    ],
)
def test_nothing_to_compare(models, scores, error):
    with pytest.raises(OptionError, match=error):
        lk.compare(models, TABLE, scores=scores)


def test_an_unknown_score_or_option_is_refused_before_any_work():
    with pytest.raises(UnknownNameError, match="choose from: exact"):
        lk.compare(["c[2] -> *"], TABLE, scores=["elbo"])
    with pytest.raises(OptionError, match="restart"):
        lk.compare(["c[2] -> *"], TABLE, restart=3)
    with pytest.raises(OptionError, match="workers is 0"):
        lk.compare(["c[2] -> *"], TABLE, workers=0)


def test_one_score_may_be_given_as_text():
    assert lk.compare(["c[2] -> *"], TABLE, scores="bic").scores == ("bic",)


def test_a_star_is_bound_to_the_columns():
    comparison = lk.compare({"star": "c[2] -> *"}, TABLE, seed=0, restarts=1)
    assert comparison.rows[0].dag == lk.Dag.parse("c[2] -> a b d e")


def values_of(comparison):
    return [(row.name, {name: e.log_z for name, e in row.evidences.items()}) for row in comparison.rows]


def test_results_do_not_depend_on_workers(comparison):
    for workers in (1, 2):
        again = lk.compare(MODELS, TABLE, scores=["bic", "cs", "vb"], seed=0, restarts=4, workers=workers)
        assert values_of(again) == values_of(comparison)
        assert again.to_frame().equals(comparison.to_frame())
    with ThreadPoolExecutor(3) as pool:
        again = lk.compare(MODELS, TABLE, scores=["bic", "cs", "vb"], seed=0, restarts=4, executor=pool)
    assert values_of(again) == values_of(comparison)


class Backwards(Executor):
    """Does nothing until the first result is asked for, and then the last piece of work first."""

    def __init__(self):
        self.waiting = []

    def submit(self, function, /, *args, **kwargs):
        executor = self

        class Late(Future):
            def result(self, timeout=None):
                while executor.waiting:
                    future, call = executor.waiting.pop()
                    if future.set_running_or_notify_cancel():
                        future.set_result(call())
                return super().result(timeout)

        future = Late()
        self.waiting.append((future, lambda: function(*args, **kwargs)))
        return future


@pytest.mark.parametrize("seed", [7, "generator"])
def test_results_do_not_depend_on_the_order_of_the_work(seed):
    def seeded():
        return np.random.default_rng(7) if seed == "generator" else seed

    options = {"scores": ["vb"], "restarts": 1, "max_iter": 3, "rescore": False}
    forwards = lk.compare(MODELS, TABLE, seed=seeded(), workers=1, **options)
    backwards = lk.compare(MODELS, TABLE, seed=seeded(), executor=Backwards(), **options)
    assert values_of(forwards) == values_of(backwards)


class Recorder:
    """Progress that writes down what it is told, and interrupts after `patience` pieces of work."""

    def __init__(self, patience=99):
        self.heard, self.patience = [], patience

    def begin(self, what, total):
        self.heard.append((what, total))

    def update(self, done):
        self.heard.append(done)
        if done == self.patience:
            raise KeyboardInterrupt

    def end(self):
        self.heard.append("end")


def test_progress_counts_structures():
    recorder = Recorder()
    lk.compare(MODELS, TABLE, seed=0, restarts=1, progress=recorder, workers=1, rescore=False)
    assert recorder.heard == [("structures", 4), 1, 2, 3, 4, "end"]


def test_an_interrupt_keeps_what_was_finished():
    recorder = Recorder(patience=2)
    comparison = lk.compare(MODELS, TABLE, seed=0, restarts=1, progress=recorder, workers=1, keep_interrupted=True)
    assert comparison.interrupted
    assert [row.name for row in comparison.rows] == ["one", "two"]
    assert math.fsum(c.probability for c in comparison["vb"]) == pytest.approx(1.0)
    assert recorder.heard[-1] == "end"
    with pytest.raises(KeyboardInterrupt):
        lk.compare(MODELS, TABLE, seed=0, restarts=1, progress=Recorder(patience=2), workers=1)


def test_edge_probabilities_add_up_over_models():
    comparison = lk.compare({"ab": "a -> b; d; e", "ba": "b -> a; d; e", "none": "a; b; d; e"}, TABLE)
    posterior = comparison["vb"]
    assert posterior.edge_probability("a", "b") == pytest.approx(posterior["ab"].probability, abs=1e-12)
    assert posterior.edge_probability("b", "a") == pytest.approx(posterior["ba"].probability, abs=1e-12)
    assert posterior.edge_probability("d", "e") == 0.0


def test_probability_of_the_number_of_hidden_variables():
    models = {**MODELS, "barren": "a -> b; b -> d; d -> e; a -> s[2]"}
    posterior = lk.compare(models, TABLE, seed=0, restarts=2, rescore=False)["vb"]
    numbers = posterior.hidden_probabilities()
    assert list(numbers) == [0, 1]
    assert numbers[1] == pytest.approx(posterior["one"].probability + posterior["two"].probability, abs=1e-12)
    assert sum(numbers.values()) == pytest.approx(1.0, abs=1e-12)


def test_a_model_that_cannot_be_scored_leaves_the_others_alone():
    models = {"small": "a b d e", "large": "c[2] -> *"}
    comparison = lk.compare(models, TABLE, scores=["exact"], budget=10)
    assert [row.name for row in comparison.rows] == ["small"]
    assert any("'large' was left out" in note and "10 count tables" in note for note in comparison.warnings)
    with pytest.raises(lk.LurkingError, match="10 count tables"):
        lk.compare({"large": "c[2] -> *"}, TABLE, scores=["exact"], budget=10)


def test_hidden_states_beside_the_models():
    models = {"one": "c -> *", "two": "c[3] -> *"}
    comparison = lk.compare(models, TABLE, hidden={"c": 2}, seed=0, restarts=1)
    assert [dict(row.dag.hidden) for row in comparison.rows] == [{"c": 2}, {"c": 3}]
    with pytest.raises(lk.LurkingError, match=r"'cc', which is in no model \(did you mean 'c'"):
        lk.compare(models, TABLE, hidden={"cc": 2})
    with pytest.raises(lk.LurkingError, match="brackets say 3"):
        lk.compare({"two": "c[3] -> *"}, TABLE, hidden={"c": 2})


def test_probabilities_of_misspelt_names_are_refused(comparison):
    with pytest.raises(UnknownNameError, match="choose from"):
        comparison["vb"].edge_probability("c", "zz")
    with pytest.raises(UnknownNameError, match="choose from"):
        comparison["vb"].hidden_parent_probability("zz")
    assert 0.0 <= comparison["vb"].hidden_parent_probability("a") <= 1.0


def test_a_winner_at_the_edge_of_the_list_is_told():
    more = lk.compare("class[1..3] -> *", lk.carcinoma(), seed=0)
    assert any("'class[3] -> *' has the most hidden states" in note for note in more.warnings)
    enough = lk.compare("class[1..4] -> *", lk.carcinoma(), seed=0)
    assert not any("most hidden states" in note for note in enough.warnings)


def test_a_second_score_without_a_value_costs_no_model_its_place():
    """`exact` is too large for two classes: it is left out, and both models are ranked by vb."""
    table = lk.stouffer_toby()
    found = lk.compare(["class[1] -> *", "class[2] -> *"], table, scores=["vb", "exact"], budget=100, rescore=False)
    assert found.scores == ("vb",)
    assert len(found["vb"]) == 2
    assert found["vb"].best.dag.hidden == {"class": 2}
    assert any("exact was left out: no value for 'class[2] -> *'" in note for note in found.warnings)


def test_fractional_weights_cost_no_model_its_place():
    table = lk.Table.from_rows([(0, 0, 1), (1, 1, 0), (1, 0, 1)], list("abc"), weights=[1.5, 2.25, 1.0])
    for other in ("exact", "ais"):
        found = lk.compare(["s[1] -> *", "s[2] -> *"], table, scores=["vb", other], rescore=False)
        assert (found.scores, len(found.rows)) == (("vb",), 2)
