"""The study of Chickering & Heckerman (1996), whole: figures 1 to 3, tables 1 and 2, and the reality check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from lurking.errors import OptionError
from lurking.experiments.bench import Sampled
from lurking.experiments.chickering1996.data import EXPERIMENTS, Experiment, data_set, generating
from lurking.experiments.chickering1996.reality import Check, checks
from lurking.experiments.chickering1996.scores import Bench, Protocol, Sampling, Scored
from lurking.experiments.chickering1996.times import Timing, timings
from lurking.runtime.blas import one_thread
from lurking.runtime.checks import check_whole, is_positive
from lurking.runtime.executor import StopFlag
from lurking.runtime.progress import Progress, Silent
from lurking.runtime.store import Store

Case = tuple[int, int, int]
"""(n, c, N) of an experiment."""
Curve = Mapping[int, Scored]
"""{states of a test model: its scores} on one data set."""


@dataclass(frozen=True)
class Config:
    """What is computed.

    experiments : lines of table 1; sets : data sets of each; protocol : how EM is run.
    epsilons, epsilon_sets : other priors α = 1 + ε, on the first data sets of every experiment.
    sampling : sampled evidence for small experiments; None leaves it out.
    timed, timed_states : experiment and test models of table 2; no states leave it out.
    checked, checked_states, repeats : (n, c, N) and test models of section 5, and generating models for each.
    """

    experiments: tuple[Experiment, ...] = EXPERIMENTS
    sets: int = 5
    protocol: Protocol = field(default_factory=Protocol)
    epsilons: tuple[float, ...] = (0.001, 0.01, 0.1)
    epsilon_sets: int = 2
    sampling: Sampling | None = field(default_factory=Sampling)
    timed: Experiment = EXPERIMENTS[4]
    timed_states: tuple[int, ...] = tuple(range(26, 37))
    checked: tuple[Case, ...] = ((12, 3, 800), (18, 3, 800), (24, 3, 800))
    checked_states: tuple[int, ...] = tuple(range(2, 9))
    repeats: int = 5

    def __post_init__(self) -> None:
        for name, least in (("sets", 1), ("epsilon_sets", 0), ("repeats", 0)):
            check_whole(name, getattr(self, name), least)
        if self.epsilon_sets > self.sets:
            raise OptionError(f"epsilon_sets is {self.epsilon_sets}; there are only {self.sets} data sets")
        for epsilon in self.epsilons:
            if not is_positive(epsilon):
                raise OptionError(f"epsilons has {epsilon!r}; each must be a number above 0, for example 0.01")
        if len({experiment.case for experiment in self.experiments}) < len(self.experiments):
            raise OptionError("experiments has two with the same n, c and rows; name each once")
        for case in self.checked:
            Experiment(*case)


def seeded(config: Config, seed: int) -> Config:
    """Return the configuration with all parameters, data and starts from this seed."""
    return replace(config, protocol=replace(config.protocol, seed=seed))


def quick(config: Config) -> Config:
    """Return a configuration of the same seed that takes well under a minute."""
    few = tuple(range(2, 7))
    return replace(
        config,
        experiments=(
            *(Experiment(n, 4, 400, few) for n in (8, 16, 32)),
            Experiment(64, 8, 400, tuple(range(4, 11, 2))),
            *(Experiment(32, 4, rows, few) for rows in (100, 200)),
        ),
        sets=2,
        epsilon_sets=1,
        sampling=Sampling(target=0.5, passes=1 << 12, most_variables=16, most_states=8),
        timed_states=(4, 8, 12),
        checked=config.checked[:1],
        checked_states=(2, 3, 4),
        repeats=2,
    )


@dataclass(frozen=True, eq=False)
class Study:
    """The whole study.

    curves : {case: one curve for each data set}.
    truths : {case: the paper's scores with c states and EM begun at the generating parameters, for each data set}.
    epsilons : {ε: {case: curves of the first data sets}}.
    sampled : {case: {states: sampled evidence} for each data set}, for small experiments.
    times : table 2; checks : section 5.
    """

    config: Config
    curves: Mapping[Case, tuple[Curve, ...]]
    truths: Mapping[Case, tuple[Scored, ...]]
    epsilons: Mapping[float, Mapping[Case, tuple[Curve, ...]]]
    sampled: Mapping[Case, tuple[Mapping[int, Sampled], ...]]
    times: tuple[Timing, ...]
    checks: tuple[Check, ...]

    @property
    def all_scored(self) -> Iterable[Scored]:
        """Every run of EM that the figures show, one for each test model and data set."""
        return (scored for curves in self.curves.values() for curve in curves for scored in curve.values())


def run(config: Config, store: Store, workers: int | None = None, progress: Progress | None = None) -> Study:
    """Compute what the store does not hold yet; results, but for times, do not depend on the number of workers."""
    bench = Bench(store, workers, StopFlag(), progress or Silent())
    protocol = config.protocol
    with one_thread():
        return Study(
            config,
            _curves(bench, "scores", config, config.sets, protocol),
            _truths(bench, config),
            _epsilons(bench, config),
            _sampled(bench, config),
            timings(bench, config.timed, config.timed_states, protocol),
            checks(bench, config.checked, config.repeats, config.checked_states, protocol, config.sampling),
        )


def _curves(bench: Bench, what: str, config: Config, sets: int, protocol: Protocol) -> dict[Case, tuple[Curve, ...]]:
    """Score every test model of every experiment on its first data sets."""
    tasks = [
        bench.scoring(table, states, protocol)
        for experiment in config.experiments
        for table in (data_set(*experiment.case, protocol.seed, place) for place in range(sets))
        for states in experiment.states
    ]
    made = iter(bench.each(what, tasks))
    return {
        experiment.case: tuple({states: Scored(**next(made)) for states in experiment.states} for _ in range(sets))
        for experiment in config.experiments
    }


def _truths(bench: Bench, config: Config) -> dict[Case, tuple[Scored, ...]]:
    protocol = config.protocol
    tasks = [
        bench.scoring_from(
            data_set(*experiment.case, protocol.seed, place),
            generating(experiment.n, experiment.c, protocol.seed),
            protocol,
        )
        for experiment in config.experiments
        for place in range(config.sets)
    ]
    made = iter(bench.each("scores from the truth", tasks))
    return {
        experiment.case: tuple(Scored(**next(made)) for _ in range(config.sets)) for experiment in config.experiments
    }


def _epsilons(bench: Bench, config: Config) -> dict[float, dict[Case, tuple[Curve, ...]]]:
    if not config.epsilon_sets:
        return {}
    return {
        epsilon: _curves(
            bench,
            f"scores with ε = {epsilon:g}",
            config,
            config.epsilon_sets,
            replace(config.protocol, epsilon=epsilon),
        )
        for epsilon in config.epsilons
    }


def _sampled(bench: Bench, config: Config) -> dict[Case, tuple[dict[int, Sampled], ...]]:
    """Sample the evidence of every test model of the small experiments."""
    setting, protocol = config.sampling, config.protocol
    if setting is None:
        return {}
    small = {
        experiment.case: [states for states in experiment.states if states <= experiment.c + setting.beyond]
        for experiment in config.experiments
        if experiment.n <= setting.most_variables and experiment.c <= setting.most_states
    }
    tasks = [
        bench.sampling(data_set(*case, protocol.seed, place), states, protocol, setting)
        for case, own in small.items()
        for place in range(config.sets)
        for states in own
    ]
    made = iter(bench.each("sampled evidence", tasks))
    return {
        case: tuple({states: Sampled(**next(made)) for states in own} for _ in range(config.sets))
        for case, own in small.items()
    }
