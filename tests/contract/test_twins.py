"""Every compiled function that Python calls has a reference twin, or a reason for having none, and a test of the pair.

The tests of pairs are where the kernels' own tests are; here nothing is left out by forgetting.
"""

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CPU = ROOT / "src" / "lurking" / "kernels" / "cpu"
REFERENCE = "lurking.kernels.reference."

PAIRS = {
    # compiled entry: (twin, file that compares them)
    "batch.climb_batch_into": ("lurking.learn.python_loop.climb_in_python", "unit/kernels/test_climb.py"),
    "completion.expected_counts_into": (f"{REFERENCE}completion.expected_counts", "unit/inference/test_completion.py"),
    "curvature.carry_into": (f"{REFERENCE}curvature.covariance", "unit/inference/curvature/test_curvature.py"),
    "curvature.means_into": (f"{REFERENCE}curvature.covariance", "unit/inference/curvature/test_curvature.py"),
    "curvature.pairs_into": (f"{REFERENCE}curvature.covariance", "unit/inference/curvature/test_curvature.py"),
    "enumeration.expect_into": (f"{REFERENCE}enumeration.expect", "contract/test_engines.py"),
    "enumeration.posterior_into": (f"{REFERENCE}enumeration.expect", "contract/test_engines.py"),
    "families.additions_into": (f"{REFERENCE}families.family_value", "unit/kernels/test_families.py"),
    "families.refine_into": (f"{REFERENCE}families.family_counts", "unit/kernels/test_families.py"),
    "junction.tree_into": (f"{REFERENCE}junction.expect", "unit/inference/engines/test_junction.py"),
    "junction.log_z_into": (f"{REFERENCE}junction.expect", "contract/test_engines.py"),
    "junction.marginals_into": (f"{REFERENCE}junction.expect", "unit/inference/engines/test_junction.py"),
    "points.log_z_into": (f"{REFERENCE}enumeration.expect", "contract/test_engines.py"),
    "points.weigh_points_into": (f"{REFERENCE}enumeration.expect", "unit/evidence/sampled/test_sampled_scores.py"),
    "sampling.draw_into": (f"{REFERENCE}sampling.draw_counts", "unit/kernels/test_sampling.py"),
    "sampling.draw_log_theta": (f"{REFERENCE}metropolis.draw_log_dirichlet", "contract/test_conjugate.py"),
    "special.log_rising": (f"{REFERENCE}special.log_rising", "unit/kernels/test_special.py"),
    "special.row_evidence": (f"{REFERENCE}special.dirichlet_evidence", "unit/kernels/test_special.py"),
    "chains.collapsed.anneal_completions_into": (
        f"{REFERENCE}collapsed.conditional",
        "unit/samplers/test_collapsed.py",
    ),
    "chains.collapsed.sweeps_into": (f"{REFERENCE}collapsed.conditional", "unit/samplers/test_collapsed.py"),
    "chains.dp_gibbs.log_joint": (f"{REFERENCE}dp_gibbs.log_joint", "unit/samplers/test_dp_gibbs.py"),
    "chains.dp_gibbs.sweep": (f"{REFERENCE}dp_gibbs.conditional", "unit/samplers/test_dp_gibbs.py"),
    "chains.gibbs.gibbs_into": (
        "lurking.samplers.reference_gibbs.ReferenceGibbs",
        "unit/samplers/test_reference_gibbs.py",
    ),
    "chains.gibbs.counts_into": ("lurking.kernels.cpu.chains.gibbs.gibbs_into", "unit/samplers/test_candidate.py"),
    "chains.metropolis.anneal_parameters_into": (
        f"{REFERENCE}metropolis.anneal_parameters",
        "unit/samplers/test_metropolis.py",
    ),
    "sums.modular.rank_in_place": (f"{REFERENCE}modular.rank_modulo", "unit/kernels/test_modular.py"),
    "sums.permanent.log_permanents_into": (f"{REFERENCE}permanent.log_permanent", "unit/kernels/test_permanent.py"),
    "sums.permanent.draw_order_into": (f"{REFERENCE}permanent.log_permanent", "unit/kernels/test_permanent.py"),
    "sums.subsets.best_sinks_into": (f"{REFERENCE}subsets.best_score", "unit/kernels/test_subsets.py"),
    "sums.subsets.best_parents_into": (f"{REFERENCE}subsets.best_score", "unit/kernels/test_subsets.py"),
    "sums.subsets.sum_orders_into": (f"{REFERENCE}subsets.edge_probabilities", "unit/kernels/test_subsets.py"),
    "sums.subsets.sum_subsets_into": (f"{REFERENCE}subsets.edge_probabilities", "unit/kernels/test_subsets.py"),
    "sums.subsets.sum_supersets_into": (f"{REFERENCE}subsets.edge_probabilities", "unit/kernels/test_subsets.py"),
    "sums.subsets.parents_of_into": (f"{REFERENCE}subsets.edge_probabilities", "unit/kernels/test_subsets.py"),
}
WITHOUT = {
    "chains.annealing.anneal_into": "tested against exact evidence, unit/samplers/annealing/test_annealed.py",
    "chains.annealing.reverse_into": "tested against exact evidence, unit/samplers/annealing/test_sandwich.py",
}


def compiled_functions():
    """Names of all functions with the decorator `njit`, such as "chains.gibbs.gibbs_into"."""
    names = set()
    for path in CPU.rglob("*.py"):
        room = ".".join(path.relative_to(CPU).with_suffix("").parts)
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            is_compiled = isinstance(node, ast.FunctionDef) and any("njit" in ast.dump(d) for d in node.decorator_list)
            if is_compiled:
                names.add(f"{room}.{node.name}")
    return names


def called_from_python():
    """Compiled functions that uncompiled code uses: other modules, or functions without the decorator beside them."""
    compiled, found = compiled_functions(), set()
    for path in (ROOT / "src").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom) and node.module]
        for node in imports if CPU not in path.parents else []:
            module = node.module.removeprefix("lurking.kernels.cpu.")
            found |= {f"{module}.{alias.name}" for alias in node.names} & compiled
        if CPU in path.parents:
            room = ".".join(path.relative_to(CPU).with_suffix("").parts)
            for node in ast.parse(text).body:
                if isinstance(node, ast.FunctionDef) and not node.decorator_list:
                    used = {call.id for call in ast.walk(node) if isinstance(call, ast.Name)}
                    found |= {f"{room}.{name}" for name in used} & compiled
    return found


def test_every_compiled_entry_has_a_twin_or_a_reason():
    assert called_from_python() - PAIRS.keys() - WITHOUT.keys() == set()
    assert (PAIRS.keys() | WITHOUT.keys()) - compiled_functions() == set()


def test_every_reference_function_is_the_twin_of_something():
    twins = {twin for twin, _ in PAIRS.values()}
    modules = {path.stem for path in (ROOT / "src/lurking/kernels/reference").glob("*.py")} - {"__init__"}
    assert {name for name in modules if not any(f"{REFERENCE}{name}." in twin for twin in twins)} == set()


@pytest.mark.parametrize("entry", PAIRS)
def test_the_pair_exists_and_its_test_uses_the_twin(entry):
    twin, file = PAIRS[entry]
    module, name = twin.rsplit(".", 1)
    assert callable(getattr(importlib.import_module(module), name))
    text = (ROOT / "tests" / file).read_text(encoding="utf-8")
    words = {"contract/test_engines.py": "reference", "contract/test_conjugate.py": "check_draws"}
    assert words.get(file, name) in text or (file.startswith("contract") and "CHECKS" in text)


def test_a_kernel_without_a_twin_would_be_found():
    assert "enumeration.expect_into" in called_from_python()
    assert "batch.climb_batch_into" in compiled_functions()
