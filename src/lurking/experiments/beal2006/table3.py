"""Table 3 of the paper: how often annealing reports less than the variational lower bound, and a row for the new path.

For every one of the 136 structures: the bound, the parameter path as in the paper (single chains, and five averaged),
the prior path over completions, and the variational path. An estimate below a lower bound is wrong, whatever its
standard error says; so is one that lies far from a better estimate without saying so.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from lurking.evidence.evaluation import evaluate
from lurking.evidence.sampled.ais import evidence_of_chains
from lurking.experiments.beal2006.contenders import is_below
from lurking.experiments.beal2006.data import OBSERVED, true_table
from lurking.experiments.beal2006.paper import printed_violation
from lurking.experiments.beal2006.sampled import STRENGTH
from lurking.graph.spaces import bipartite
from lurking.inference.problem import Problem
from lurking.learn.loop import Status
from lurking.learn.options import FitOptions
from lurking.runtime.executor import StopFlag, map_in_order
from lurking.runtime.progress import Progress, Silent
from lurking.runtime.rng import seed_sequence
from lurking.samplers.diagnostics import log_mean
from lurking.samplers.metropolis import anneal_parameters, schedule

PRINTED = {
    "one chain below the bound": "AIS(1) < VB*",
    "one chain below the bound + ln S": "AIS(1) < VB",
    "five chains below the bound": "AIS(5) < VB*",
    "five chains below the bound + ln S": "AIS(5) < VB",
    "rejected proposals": "rejected proposals",
}
"""{row here: row of the paper's table}"""
FAR = 4.0
"""Standard errors by which two estimates must differ to be called different."""


@dataclass(frozen=True)
class Config:
    """Sizes of the data, temperatures and chains of the parameter path, standard error of the variational path."""

    sizes: tuple[int, ...] = (480,)
    steps: int = 16384
    chains: int = 26
    target: float = 0.3
    seed: int = 0
    most_structures: int = 136


def quick(config: Config) -> Config:
    """Return a configuration of the same seed that takes seconds."""
    return replace(config, steps=256, chains=10, target=0.5, most_structures=6)


@dataclass(frozen=True)
class Scored:
    """One structure: the bound, with ln S, one and five chains, share rejected, (ln p, error, status) of each path."""

    model: str
    bound: float
    corrected: float
    one_chain: float
    five_chains: float
    rejected: float
    paths: dict[str, tuple[float, float, str]]


@dataclass(frozen=True)
class Size:
    """All structures at one size of the data."""

    n: int
    scored: tuple[Scored, ...]

    def percentages(self) -> dict[str, float]:
        """Return the rows of the table, in percent of the structures."""
        everything = self.scored
        return {
            "one chain below the bound": _percent([s.one_chain for s in everything], [s.bound for s in everything]),
            "one chain below the bound + ln S": _percent(
                [s.one_chain for s in everything], [s.corrected for s in everything]
            ),
            "five chains below the bound": _percent([s.five_chains for s in everything], [s.bound for s in everything]),
            "five chains below the bound + ln S": _percent(
                [s.five_chains for s in everything], [s.corrected for s in everything]
            ),
            "rejected proposals": 100.0 * sum(s.rejected for s in everything) / len(everything),
            "variational path below the bound": _percent(
                [s.paths["variational"][0] for s in everything], [s.bound for s in everything]
            ),
        }

    def disagreements(self) -> dict[str, dict[str, int]]:
        """Return, for every other path, how often it lies above or below the variational one, and below unflagged."""
        found: dict[str, dict[str, int]] = {}
        for path in ("parameters", "prior"):
            above = below = unflagged = 0
            for scored in self.scored:
                value, error, status = scored.paths[path]
                best, best_error, _ = scored.paths["variational"]
                far = FAR * math.hypot(error, best_error)
                above += value - best > far
                below += best - value > far
                unflagged += best - value > far and status == Status.SAMPLED.name
            found[path] = {"above": above, "below": below, "below and not flagged": unflagged}
        return found


@dataclass(frozen=True)
class Table3:
    """The whole table."""

    config: Config
    sizes: tuple[Size, ...]

    def content(self) -> dict[str, Any]:
        """Return everything as plain values."""
        return {
            "config": asdict(self.config),
            "sizes": [
                {
                    "n": size.n,
                    "percentages": size.percentages(),
                    "disagreements": size.disagreements(),
                    "structures": [asdict(one) for one in size.scored],
                }
                for size in self.sizes
            ],
        }

    def text(self) -> str:
        """Return the table as text, with the paper's numbers beside where it prints them for this n."""
        lines = []
        for size in self.sizes:
            lines.append(f"n = {size.n}, {len(size.scored)} structures, percent of them (paper's in brackets)")
            for what, value in size.percentages().items():
                printed = printed_violation(PRINTED.get(what, ""), size.n)
                note = f"  ({printed})" if printed else ""
                lines.append(f"  {what:36} {value:6.1f}{note}")
            for path, counts in size.disagreements().items():
                listed = ", ".join(f"{count} {where}" for where, count in counts.items())
                lines.append(f"  {path} path against the variational one, by {FAR:.0f} standard errors: {listed}")
        return "\n".join(lines)


def _percent(values: Sequence[float], bounds: Sequence[float]) -> float:
    """Return the percentage of values below their bound."""
    return 100.0 * float(np.mean(is_below(np.asarray(values), np.asarray(bounds))))


def run(config: Config, workers: int | None = None, progress: Progress | None = None) -> Table3:
    """Score every structure at every size; results do not depend on the number of workers."""
    meter, stop = progress or Silent(), StopFlag()
    dags = list(bipartite({"s1": 2, "s2": 2}, list(OBSERVED)))[: config.most_structures]
    pieces = [(n, dag) for n in config.sizes for dag in dags]
    tables = {n: true_table(n) for n in config.sizes}
    meter.begin("structures", len(pieces))
    try:
        scored = map_in_order(
            lambda piece: _score(Problem(piece[1], tables[piece[0]]), config, stop),
            pieces,
            workers=workers,
            stop=stop,
            done=meter.update,
        )
    finally:
        meter.end()
    if stop.is_set:
        raise KeyboardInterrupt
    count = len(dags)
    sizes = [Size(n, tuple(scored[k * count : (k + 1) * count])) for k, n in enumerate(config.sizes)]
    return Table3(config, tuple(sizes))


def _score(problem: Problem, config: Config, stop: StopFlag) -> Scored:
    """Bound, chains and paths of one structure."""
    options = FitOptions(restarts=10, seed=config.seed, workers=1, stop=stop, keep_interrupted=True)
    vb = evaluate(problem, ["vb"], options, {})["vb"]
    seeds = seed_sequence(config.seed).spawn(config.chains)
    chains = anneal_parameters(problem, schedule(config.steps), seeds, strength=(STRENGTH, 0.0), workers=1, stop=stop)
    if not len(chains):
        raise KeyboardInterrupt
    paths = {
        "variational": evaluate(problem, ["ais"], options, {"target": config.target})["ais"],
        "prior": evaluate(problem, ["ais"], options, {"path": "prior"})["ais"],
        "parameters": evidence_of_chains(chains.log_weights, config.target, {"path": "parameters"}, stop.is_set),
    }
    return Scored(
        str(problem.full_dag),
        vb.log_z,
        vb.corrected,
        float(chains.log_weights[0]),
        log_mean(chains.log_weights[:5]),
        0.0 if problem.is_complete else 1.0 - float(chains.acceptance.mean()),
        {path: (found.log_z, found.nominal_error or 0.0, found.status.name) for path, found in paths.items()},
    )
