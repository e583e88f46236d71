"""The experiments of Beal & Ghahramani (2006) on tiny settings."""

import importlib.util
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from lurking.errors import OptionError
from lurking.experiments.beal2006 import data, figure6, table3
from lurking.report.beal2006 import Hysteresis, Traces, plot_figure6, table_text
from lurking.runtime.store import Store
from lurking.samplers.metropolis import schedule

TINY = figure6.Config(
    rows=40,
    steps=(16, 64, 256),
    chains=4,
    passes=1 << 14,
    sizes=(10, 640),
    acceptance_steps=64,
    structures=6,
    curvatures=(0.2, 100.0),
    hysteresis_steps=(16, 256),
    burn_in=500,
)


@pytest.fixture(scope="module")
def figure():
    return figure6.run(TINY, workers=1)


# The data.


def test_the_first_rows():
    assert data.draw_rows(5).tolist() == [[4, 4, 2, 1], [0, 0, 2, 4], [2, 1, 0, 4], [2, 1, 0, 4], [2, 1, 3, 4]]


def test_the_rows_are_those_of_the_benchmarks():
    path = Path(__file__).resolve().parents[3] / "benchmarks" / "data.py"
    spec = importlib.util.spec_from_file_location("benchmark_data", path)
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    np.testing.assert_array_equal(data.draw_rows(480), benchmark.two_causes(480))
    np.testing.assert_array_equal(data.draw_rows(10240), benchmark.two_causes(10240))


def test_smaller_sets_are_the_first_rows_of_larger_ones():
    np.testing.assert_array_equal(data.draw_rows(20)[:10], data.draw_rows(10))


@pytest.mark.parametrize("n", [0, 10241])
def test_other_numbers_of_rows_are_refused(n):
    with pytest.raises(OptionError, match="1 to 10240"):
        data.draw_rows(n)


def test_the_frequencies_are_those_of_the_true_model():
    tables = data.true_tables()
    expected = tables["s1"][0] @ tables["y1"]
    seen = np.bincount(data.draw_rows(10240)[:, 0], minlength=5) / 10240
    # Five standard deviations of the largest share.
    np.testing.assert_allclose(seen, expected, atol=5.0 * math.sqrt(0.25 / 10240))


def test_the_true_parameters_as_a_start():
    problem = data.true_problem(40)
    theta = np.zeros(problem.layout.size)
    theta[problem.engine.active] = np.exp(data.true_log_theta(problem))
    assert problem.dimension == 50
    np.testing.assert_allclose(problem.layout.row_sums(theta), 1.0)
    np.testing.assert_allclose(problem.layout.table(theta, "s2"), [[0.08, 0.92]])
    assert problem.layout.table(theta, "y3")[3, 1] == pytest.approx(0.0025 / 0.9925)


def test_every_table_row_of_the_true_structure_is_moved():
    problem = data.true_problem(480)
    assert not problem.engine.inactive.size


# Figure 6.


def test_shapes(figure):
    assert figure.traces.prior.shape == (3, 4)
    assert figure.traces.true.shape == (3,)
    assert figure.traces.variational.shape == (3, 4)
    assert figure.acceptance.quarters.shape == (2, 4)
    assert figure.acceptance.structures == 5  # one of the six has nothing hidden above anything observed
    assert figure.hysteresis.forward.shape == figure.hysteresis.backward.shape == (2, 2, 4)


def test_two_workers_find_what_one_finds(figure):
    other = figure6.run(TINY, workers=2)
    for name in ("prior", "true", "variational"):
        np.testing.assert_array_equal(getattr(other.traces, name), getattr(figure.traces, name))
    np.testing.assert_array_equal(other.acceptance.quarters, figure.acceptance.quarters)
    np.testing.assert_array_equal(other.hysteresis.backward, figure.hysteresis.backward)
    assert other.references == figure.references


def test_another_seed_moves_the_chains_but_not_the_data(figure):
    other = figure6.run(replace(TINY, seed=1), workers=1)
    assert not np.array_equal(other.traces.prior, figure.traces.prior)
    assert other.references.bound == pytest.approx(figure.references.bound, abs=0.5)


def test_the_mean_of_ln_rises_with_the_number_of_temperatures(figure):
    assert np.all(np.diff(figure.traces.prior.mean(axis=1)) > 0.0)


def test_the_variational_path_is_nearer_at_equal_cost(figure):
    prior, variational = (
        abs(own.mean(axis=1) - figure.references.estimate) for own in (figure.traces.prior, figure.traces.variational)
    )
    assert np.all(variational < prior)


def test_the_estimate_is_above_the_bound(figure):
    assert figure.references.estimate > figure.references.bound


def test_larger_data_accept_fewer_proposals_and_later_quarters_too(figure):
    assert figure.acceptance.mean[1] < figure.acceptance.mean[0]
    assert figure.acceptance.quarters[1, 3] < figure.acceptance.quarters[1, 0]
    np.testing.assert_allclose(figure.acceptance.quarters.mean(axis=1), figure.acceptance.mean)


def test_hysteresis_closes_around_the_estimate(figure):
    forward, backward = (own.mean(axis=2) for own in (figure.hysteresis.forward, figure.hysteresis.backward))
    width = backward - forward
    assert np.all(forward < figure.references.estimate)
    assert np.all(backward > figure.references.estimate - 1.0)
    assert np.all(width[:, 1] < width[:, 0])


def test_a_chain_back_on_a_schedule_of_one_step_is_the_likelihood_of_its_start():
    problem = data.true_problem(40)
    walk = figure6.Walk(problem, "joint", (2000.0, 0.0))
    start = data.true_log_theta(problem)
    found = figure6._backward(walk, schedule(1), start[None, :], np.random.SeedSequence(0).spawn(1), 1)
    potentials = np.zeros(problem.layout.size)
    potentials[problem.engine.active] = start
    _, expected = problem.engine.expect(potentials)
    assert found[0] == pytest.approx(expected, rel=1e-12)


def test_the_quick_setting_keeps_seed_and_rows():
    config = figure6.quick(figure6.Config(seed=3))
    assert (config.seed, config.rows) == (3, 480)
    assert max(config.steps) == 1 << 9


# The report.


def traces_through(*means):
    return Traces(tuple(1 << k for k in range(len(means))), np.asarray(means)[:, None], np.zeros(1), np.zeros((1, 1)))


def test_a_figure_comes_back_from_the_store(figure, tmp_path, monkeypatch):
    with Store(tmp_path / "kept.sqlite") as store:
        made = figure6.recall(TINY, store, 1)
        monkeypatch.setattr(figure6, "run", None)  # nothing is made a second time
        again = figure6.recall(TINY, store, 2)
    for one in (made, again):
        assert table_text(one) == table_text(figure)
        assert np.array_equal(one.hysteresis.backward, figure.hysteresis.backward)
        assert one.traces.steps == figure.traces.steps


def test_crossings_are_linear_in_the_logarithm():
    assert traces_through(-3.0, -1.0, 1.0).crossing(0.0) == pytest.approx(2.0**1.5)
    assert traces_through(-3.0, -1.0).crossing(0.0) == math.inf
    assert traces_through(1.0, 2.0).crossing(0.0) == 0.0


def test_the_tables_tell_the_numbers_beside_those_of_the_paper(figure):
    lines = table_text(figure).splitlines()
    (bound,) = [line.split() for line in lines if line.startswith("VB bound")]
    assert bound[-1] == f"{figure.references.bound:.2f}"
    (row,) = [line.split() for line in lines if line.startswith("640 ")]
    assert row[1] == f"{figure.acceptance.mean[1]:.3f}"
    assert row[-1] == "0.585"
    assert max(map(len, lines)) <= 120


def test_the_picture_has_four_panels_with_labels(figure):
    picture = plot_figure6(figure)
    assert len(picture.axes) == 4
    for axes in picture.axes:
        assert axes.get_xlabel()
        assert axes.get_ylabel()
        assert axes.get_title(loc="left")
    labels = picture.axes[0].get_legend_handles_labels()[1]
    assert labels == [
        "prior path, 4 seeds",
        "variational path, 4 seeds",
        "from the true θ",
        "VB bound",
        "BIC",
        "ais, standard error",
    ]


def test_legends_do_not_cover_the_panels(figure):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    picture = plot_figure6(figure)
    FigureCanvasAgg(picture).draw()
    boxes = [axes.get_window_extent() for axes in picture.axes]
    for axes in picture.axes:
        legend = axes.get_legend().get_window_extent()
        assert not any(legend.overlaps(box) for box in boxes)


def test_width_of_the_hysteresis_and_its_error():
    forward, backward = np.array([[[1.0, 3.0]]]), np.array([[[6.0, 6.0]]])
    hysteresis = Hysteresis((0.2,), (16,), forward, backward)
    assert hysteresis.width[0, 0] == 4.0
    assert hysteresis.width_error[0, 0] == pytest.approx(1.0)


def test_table_of_violations_does_not_depend_on_workers():
    config = table3.Config(sizes=(40,), steps=64, chains=10, target=1.0, most_structures=3)
    one, two = (table3.run(config, workers=workers) for workers in (1, 2))
    assert one.content() == two.content()
    (size,) = one.sizes
    assert len(size.scored) == 3
    for scored in size.scored:
        assert scored.corrected >= scored.bound
        value, error, _ = scored.paths["variational"]
        assert value + 4.0 * error >= scored.bound - 1e-9, "a bound is never above the truth"
    assert set(size.disagreements()) == {"parameters", "prior"}
    assert "variational path below the bound" in one.text()
    assert "(<= 5.7)" in one.text()


def test_violations_are_counted():
    def scored(bound, chain, better, status):
        paths = {"variational": (better, 0.1, "SAMPLED"), "prior": (better, 0.1, "SAMPLED")}
        return table3.Scored("m", bound, bound + 1.0, chain, chain, 0.4, paths | {"parameters": (chain, 0.1, status)})

    size = table3.Size(480, (scored(-10.0, -11.0, -9.0, "SAMPLED"), scored(-10.0, -9.5, -9.5, "UNTRUSTED")))
    rows = size.percentages()
    assert rows["one chain below the bound"] == 50.0
    assert rows["one chain below the bound + ln S"] == 100.0
    assert rows["rejected proposals"] == pytest.approx(40.0)
    assert size.disagreements()["parameters"] == {"above": 0, "below": 1, "below and not flagged": 1}
    assert size.disagreements()["prior"] == {"above": 0, "below": 0, "below and not flagged": 0}
