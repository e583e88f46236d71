"""The four illustrations of the lecture: evidence, decomposability, sparse mixtures, what a hidden variable leaves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from lurking.errors import OptionError
from lurking.experiments.bench import Workbench
from lurking.experiments.murphy24.decomposability import GainConfig, Gains, gains
from lurking.experiments.murphy24.evidence import Curve, EvidenceConfig, Size, curves
from lurking.experiments.murphy24.signature import Learnt, SignatureConfig, learnt
from lurking.experiments.murphy24.sparse import SparseConfig, SparseSet, sparse_sets
from lurking.runtime.blas import one_thread
from lurking.runtime.executor import StopFlag
from lurking.runtime.progress import Progress, Silent
from lurking.runtime.store import Store

PARTS: Final = ("evidence", "decomposability", "sparse", "signature")


@dataclass(frozen=True)
class Config:
    """What is computed: the parts by name, the setting of each, and the seed of all data and starts."""

    parts: tuple[str, ...] = PARTS
    evidence: EvidenceConfig = field(default_factory=EvidenceConfig)
    decomposability: GainConfig = field(default_factory=GainConfig)
    sparse: SparseConfig = field(default_factory=SparseConfig)
    signature: SignatureConfig = field(default_factory=SignatureConfig)
    seed: int = 0

    def __post_init__(self) -> None:
        for name in self.parts:
            if name not in PARTS:
                raise OptionError(f"parts has {name!r}; the parts are: {', '.join(PARTS)}")


def quick(config: Config) -> Config:
    """Return a configuration of the same parts and seed that takes well under a minute."""
    return replace(
        config,
        evidence=EvidenceConfig(sizes=(Size(3, 8, 200),), sets=2, beyond=1, draws=500, target=0.5, passes=1 << 13),
        decomposability=replace(config.decomposability, sets=4, restarts=100, passes=1 << 12),
        sparse=replace(config.sparse, items=6, relevant=3, sets=2, restarts=8, random_starts=3),
        signature=replace(config.signature, rows=(300, 3000), sets=2, target=0.3, passes=1 << 13),
    )


@dataclass(frozen=True, eq=False)
class Study:
    """The whole study; what was not asked for is empty."""

    config: Config
    curves: Mapping[Size, tuple[Curve, ...]]
    gains: tuple[Gains, ...]
    sparse: tuple[SparseSet, ...]
    learnt: tuple[Learnt, ...]


def run(config: Config, store: Store, workers: int | None = None, progress: Progress | None = None) -> Study:
    """Compute what the store does not hold yet; results, but for times, do not depend on the number of workers."""
    bench = Workbench(store, workers, StopFlag(), progress or Silent())
    with one_thread():
        return Study(
            config,
            curves(bench, config.evidence, config.seed) if "evidence" in config.parts else {},
            gains(bench, config.decomposability, config.seed) if "decomposability" in config.parts else (),
            sparse_sets(bench, config.sparse, config.seed) if "sparse" in config.parts else (),
            learnt(bench, config.signature, config.seed) if "signature" in config.parts else (),
        )
