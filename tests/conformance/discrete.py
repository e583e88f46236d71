"""Cases of the kind `discrete`: networks of discrete variables with hidden variables and missing values."""

import math
from collections import Counter
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import digamma, gammaln

import lurking as lk
from conformance.comparison import Comparison
from conformance.discrete_model import Model
from conformance.discrete_points import check_point, not_compared

GIVEN = (
    *("id", "family", "description", "names", "card", "parents", "hidden", "lambda", "data", "theta0"),
    "exact.predictive.row",
)
"""Keys that state the problem."""
NOT_COMPARED = {
    "exact.n_completions": "of the reference computation",
    "exact.n_count_tables": "of the reference computation",
    "exact.largest_disagreement": "of the reference computation",
    "exact.ways": "of the reference computation",
    "barren_cells_left_out.note": "text",
    "vbem.converged.iterations": "of the reference computation",
    "vbem.converged.last_change_of_F": "of the reference computation",
    **not_compared(),
}
MOST_TABLES = 1_000_000
"""Count tables, in all evidences together, up to which posterior means are computed: about three seconds."""


def is_case(numbers: Any) -> bool:
    """Return True for the content of a case of this kind."""
    return isinstance(numbers, dict) and {"names", "card", "parents", "lambda", "theta0", "em"} <= numbers.keys()


def compare(comparison: Comparison) -> None:
    """Compare all values of a case."""
    model = Model(comparison.numbers)
    check_structure(comparison, model)
    if comparison.numbers.get("exact"):
        check_exact(comparison, model)
        check_posterior(comparison, model)
    check_first_e_step(comparison, model)
    for stored in comparison.numbers["em"]:
        check_point(comparison, model, stored)
    check_variational(comparison, model)
    if comparison.numbers.get("barren_cells_left_out"):
        check_pruned(comparison, model)


def check_structure(comparison: Comparison, model: Model) -> None:
    """Compare dimensions, numbers of relabelings and flags."""
    check, problem = comparison.check, model.problem
    check("n", lambda: problem.n)
    check("structure.d", lambda: problem.dimension)
    check("structure.d_effective", lambda: problem.effective_dimension)
    check("structure.ln_S", lambda: problem.log_aliases)
    check("structure.S", lambda: math.exp(problem.log_aliases))
    check("structure.ln_S_relevant", lambda: problem.relevant_log_aliases)
    check("structure.S_relevant", lambda: math.exp(problem.relevant_log_aliases))
    flat_prior = lk.Problem(model.dag, model.table, 1.0, prune=False)
    check("structure.S_ignoring_prior", lambda: math.exp(flat_prior.log_aliases))
    check("flags.complete_data", lambda: problem.is_complete)
    check("flags.has_barren_missing", lambda: leaves_out_cells(model))


def leaves_out_cells(model: Model) -> bool:
    """Return True if prune=True leaves out cells: each cell that is kept adds 1 to the expected counts."""
    kept = model.fit("vb", 1, True).counts.sum()
    return bool(kept < len(model.rows) * len(model.names) - 0.5)


def check_exact(comparison: Comparison, model: Model) -> None:
    """Compare the exact evidence and the predictive probability."""
    check = comparison.check
    check("exact.log_evidence", lambda: model.exact(True))
    if leaves_out_cells(model):
        check("exact.log_evidence", lambda: model.exact(False))

    def ratio_to_fraction() -> float:
        # The fraction may be too small for a float.
        fraction = Fraction(comparison.stored("exact.evidence_fraction"))
        return math.exp(model.exact(True) - math.log(fraction.numerator) + math.log(fraction.denominator))

    if comparison.stored("exact").get("evidence_fraction") is None:
        comparison.excuse(comparison.under("exact.evidence_fraction"), "not stored for every case")
    else:
        check("exact.evidence_fraction", ratio_to_fraction, lambda _fraction: 1.0)

    def predictive() -> float:
        longer = model.table_of([*model.rows, comparison.stored("exact.predictive.row")])
        return lk.score(model.dag, longer, "exact", prior=model.prior).log_z - model.exact(True)

    check("exact.predictive.log_p", predictive)


def check_posterior(comparison: Comparison, model: Model) -> None:
    """Compare posterior means of counts and parameters, from ratios of exact evidences."""
    distinct = Counter(tuple(row) for row in model.rows)
    n_evidences = sum(len(model.completions(row)) for row in distinct) + len(model.pseudo_counts)
    n_tables = comparison.stored("exact").get("n_count_tables") or math.inf
    keys = ("exact.posterior_expected_counts", "exact.posterior_mean_theta")
    if n_evidences * n_tables > MOST_TABLES:
        comparison.excuse(keys, "needs too many large exact evidences")
        return
    comparison.check(keys[0], lambda: posterior_counts(model, distinct))
    comparison.check(keys[1], lambda: posterior_means(model))


def posterior_counts(model: Model, distinct: Counter[tuple[int | None, ...]]) -> np.ndarray:
    """Return E[N | y] = Σ_i Σ_completions p(y with row i completed) / p(y) · (its counts)."""
    counts, total = np.zeros(len(model.pseudo_counts)), model.log_evidence(model.rows)
    for row, times in distinct.items():
        rest = list(model.rows)
        rest.remove(list(row))
        for completion in model.completions(row):
            share = 1.0 if None not in row else math.exp(model.log_evidence([*rest, list(completion)]) - total)
            counts[model.places(completion)] += times * share
    return counts


def posterior_means(model: Model) -> np.ndarray:
    """Return E[θ | y]: θ_jlk Dir(θ_jl; λ_jl) is λ_jlk / Σ λ_jl times the density with 1 added to λ_jlk."""
    total, means = model.log_evidence(model.rows), []
    for j, table in enumerate(model.numbers["lambda"]):
        for l, row in enumerate(table):  # noqa: E741
            for k, pseudo_count in enumerate(row):
                raised = [[list(entries) for entries in rows] for rows in model.numbers["lambda"]]
                raised[j][l][k] += 1.0
                gain = model.log_evidence(model.rows, model.prior_of(raised)) - total
                means.append(pseudo_count / sum(row) * math.exp(gain))
    return np.asarray(means)


def check_first_e_step(comparison: Comparison, model: Model) -> None:
    """Compare log-likelihood, expected counts and posteriors of the rows at the start."""
    check = comparison.check
    check("first_e_step.loglik", lambda: model.start_network.loglik(model.table).sum())
    check("first_e_step.expected_counts", lambda: expected_counts(model, prune=False))
    joint = lk.Network.from_tables(model.open_dag, model.start).joint(model.names)

    def posterior(row: list[int | None]) -> dict[tuple[int, ...], float]:
        weights = {states: float(joint[states]) for states in model.completions(row)}
        total = math.fsum(weights.values())
        return {states: weight / total for states, weight in weights.items()}

    def entropy() -> float:
        return -math.fsum(p * math.log(p) for row in model.rows for p in posterior(row).values() if p > 0.0)

    def of_entry(row: list[int | None], states: list[int]) -> float:
        given = iter(states)
        return posterior(row)[tuple(next(given) if cell is None else cell for cell in row)]

    check("first_e_step.entropy_of_q", entropy)
    check(
        "first_e_step.row_posteriors",
        lambda: [
            of_entry(row, states)
            for row, entries in zip(model.rows, comparison.stored("first_e_step.row_posteriors"), strict=True)
            for states, _ in entries
        ],
        lambda rows: [probability for entries in rows for _, probability in entries],
    )


def expected_counts(model: Model, *, prune: bool) -> np.ndarray:
    """Return N at the start: the first step of VB is an ordinary E step, and q(θ) has λ + N."""
    return model.flat(model.fit("vb", 1, prune).posterior) - model.pseudo_counts


def bounds_between_half_steps(model: Model, n: int, *, prune: bool) -> list[float]:
    """Return the bounds with the new q(rows) and the old q(θ) = Dir(α), of the iterations 2 … n.

    F = log_z(E[ln θ]) − KL[Dir(α) ‖ Dir(λ)]: the log_z is that of the next fit, the α that of the one before.
    """
    return [
        model.fit("vb", t, prune).log_z - divergence(model, model.fit("vb", t - 1, prune).posterior)
        for t in range(2, n + 1)
    ]


def divergence(model: Model, posterior: Any) -> float:
    """Return Σ_jl KL[Dir(α_jl) ‖ Dir(λ_jl)]."""
    total = 0.0
    for name, pseudo in model.tables_of(model.numbers["lambda"]).items():
        alpha = posterior[name]
        total += (gammaln(alpha.sum(axis=1)) - gammaln(pseudo.sum(axis=1))).sum()
        total += (gammaln(pseudo) - gammaln(alpha)).sum()
        total += ((alpha - pseudo) * (digamma(alpha) - digamma(alpha.sum(axis=1, keepdims=True)))).sum()
    return float(total)


def check_variational(comparison: Comparison, model: Model) -> None:
    """Compare the variational bounds and posteriors."""
    check = comparison.check
    n = len(comparison.stored("vbem.F_after_vbm"))
    check("vbem.F_after_vbm", lambda: model.fit("vb", n).trace)
    check("vbem.F_after_vbe", lambda: bounds_between_half_steps(model, n, prune=False), lambda values: values[1:])
    check("vbem.alpha_after_5", lambda: model.flat(model.fit("vb", 5).posterior))
    # The sixth E step is at exp(E[ln θ]) after five iterations.
    check("vbem.theta_tilde_after_5", lambda: np.exp(model.fit("vb", 6).potentials))
    for iterations in (5, 50):
        key = f"vbem.F_after_{iterations}_iterations"
        check(key, lambda k=iterations: model.scores(("vb",), "map", k)["vb"].log_z)
    if comparison.has("vbem.converged"):
        iterations = comparison.stored("vbem.converged.iterations")
        check("vbem.converged.F", lambda: model.fit("vb", iterations).objective)
        check("vbem.converged.alpha", lambda: model.flat(model.fit("vb", iterations).posterior))


def check_pruned(comparison: Comparison, model: Model) -> None:
    """Compare the values with unobserved cells left out that have no observed descendant."""
    check, base = comparison.check, "barren_cells_left_out"
    n = len(comparison.stored(f"{base}.F_after_vbm"))
    check(f"{base}.F_after_vbm", lambda: model.fit("vb", n, True).trace)
    check(f"{base}.F_after_vbe", lambda: bounds_between_half_steps(model, n, prune=True), lambda values: values[1:])
    check(f"{base}.expected_counts_first_e_step", lambda: expected_counts(model, prune=True))
    check(f"{base}.em_ml_loglik", lambda: model.logliks("ml", n + 1, True))
    check(f"{base}.em_map_softmax_loglik", lambda: model.logliks("map", n + 1, True))
