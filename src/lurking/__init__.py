"""lurking: how much evidence the data hold for each structure with hidden variables.

>>> import lurking as lk
>>> table = lk.read("survey.csv")                                     # doctest: +SKIP
>>> lk.score("class[3] -> *", table, "vb", seed=0).log_z              # doctest: +SKIP
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lurking.data.datasets import carcinoma as carcinoma
    from lurking.data.datasets import gss82 as gss82
    from lurking.data.datasets import stouffer_toby as stouffer_toby
    from lurking.data.discretise import discretise as discretise
    from lurking.data.files import read as read
    from lurking.data.table import Table as Table
    from lurking.errors import LurkingError as LurkingError
    from lurking.errors import LurkingWarning as LurkingWarning
    from lurking.errors import UndefinedScore as UndefinedScore
    from lurking.evidence.api import score as score
    from lurking.evidence.base import Evidence as Evidence
    from lurking.evidence.base import Kind as Kind
    from lurking.graph.dag import Dag as Dag
    from lurking.graph.equivalence import Cpdag as Cpdag
    from lurking.graph.equivalence import structural_hamming_distance as structural_hamming_distance
    from lurking.graph.spaces import bipartite as bipartite
    from lurking.inference.log_posterior import LogPosterior as LogPosterior
    from lurking.inference.network import Network as Network
    from lurking.inference.problem import Problem as Problem
    from lurking.io.models_file import read_models as read_models
    from lurking.io.networks import read_network as read_network
    from lurking.io.networks import write_network as write_network
    from lurking.learn.api import fit as fit
    from lurking.learn.fit import Fit as Fit
    from lurking.learn.loop import Status as Status
    from lurking.models.prior import Prior as Prior
    from lurking.report.prequential import plot_prequential as plot_prequential
    from lurking.report.profiles import plot_profiles as plot_profiles
    from lurking.samplers.dp_gibbs import ProcessDraws as ProcessDraws
    from lurking.samplers.dp_gibbs import dirichlet_process as dirichlet_process
    from lurking.samplers.gibbs import gibbs as gibbs
    from lurking.search.api import SearchResult as SearchResult
    from lurking.search.api import edge_posterior as edge_posterior
    from lurking.search.api import search as search
    from lurking.search.calibration import calibrate as calibrate
    from lurking.search.compare import compare as compare
    from lurking.search.comparison import Comparison as Comparison
    from lurking.search.direct import DirectSearch as DirectSearch
    from lurking.search.direct import direct_search as direct_search
    from lurking.search.edges import EdgePosterior as EdgePosterior
    from lurking.search.jumps import SampledStructures as SampledStructures
    from lurking.search.jumps import sample_structures as sample_structures
    from lurking.search.posterior import StructurePosterior as StructurePosterior
    from lurking.search.prequential import Prequential as Prequential
    from lurking.search.prequential import prequential as prequential
    from lurking.search.sparse import SparseMixture as SparseMixture
    from lurking.search.sparse import sparse_mixture as sparse_mixture
    from lurking.search.structural_em import StructuralEm as StructuralEm
    from lurking.search.structural_em import structural_em as structural_em
    from lurking.search.structures import start_structure as start_structure

__version__ = "0.1.0"

_HOME = {
    "Comparison": "lurking.search.comparison",
    "Cpdag": "lurking.graph.equivalence",
    "Dag": "lurking.graph.dag",
    "DirectSearch": "lurking.search.direct",
    "EdgePosterior": "lurking.search.edges",
    "Evidence": "lurking.evidence.base",
    "Fit": "lurking.learn.fit",
    "Kind": "lurking.evidence.base",
    "LogPosterior": "lurking.inference.log_posterior",
    "LurkingError": "lurking.errors",
    "LurkingWarning": "lurking.errors",
    "Network": "lurking.inference.network",
    "Prequential": "lurking.search.prequential",
    "Prior": "lurking.models.prior",
    "Problem": "lurking.inference.problem",
    "ProcessDraws": "lurking.samplers.dp_gibbs",
    "SampledStructures": "lurking.search.jumps",
    "SearchResult": "lurking.search.api",
    "SparseMixture": "lurking.search.sparse",
    "Status": "lurking.learn.loop",
    "StructuralEm": "lurking.search.structural_em",
    "StructurePosterior": "lurking.search.posterior",
    "Table": "lurking.data.table",
    "UndefinedScore": "lurking.errors",
    "bipartite": "lurking.graph.spaces",
    "calibrate": "lurking.search.calibration",
    "carcinoma": "lurking.data.datasets",
    "compare": "lurking.search.compare",
    "dirichlet_process": "lurking.samplers.dp_gibbs",
    "direct_search": "lurking.search.direct",
    "discretise": "lurking.data.discretise",
    "edge_posterior": "lurking.search.api",
    "fit": "lurking.learn.api",
    "gibbs": "lurking.samplers.gibbs",
    "gss82": "lurking.data.datasets",
    "plot_prequential": "lurking.report.prequential",
    "plot_profiles": "lurking.report.profiles",
    "prequential": "lurking.search.prequential",
    "read": "lurking.data.files",
    "read_models": "lurking.io.models_file",
    "read_network": "lurking.io.networks",
    "sample_structures": "lurking.search.jumps",
    "score": "lurking.evidence.api",
    "search": "lurking.search",
    "sparse_mixture": "lurking.search.sparse",
    "start_structure": "lurking.search.structures",
    "stouffer_toby": "lurking.data.datasets",
    "structural_em": "lurking.search.structural_em",
    "structural_hamming_distance": "lurking.graph.equivalence",
    "write_network": "lurking.io.networks",
}

__all__ = ["__version__", *_HOME]  # noqa: PLE0604 - the keys are names


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `import lurking` stays cheap."""
    if name not in _HOME:
        raise AttributeError(f"module 'lurking' has no attribute {name!r}")
    home = import_module(_HOME[name])
    # `search` is a package that can be called, for a function of that name would hide it.
    value = home if home.__name__ == f"lurking.{name}" else getattr(home, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOME])
