"""The scores, one line each; the order is the order in tables."""

from __future__ import annotations

from lurking.evidence.asymptotic.adjusted_bic import adjusted_bic
from lurking.evidence.asymptotic.bic import bic
from lurking.evidence.asymptotic.bicp import bicp
from lurking.evidence.asymptotic.draper import draper
from lurking.evidence.asymptotic.laplace import laplace, mode_of
from lurking.evidence.base import SCORES, register
from lurking.evidence.cs import cheeseman_stutz
from lurking.evidence.exact import exact
from lurking.evidence.map_likelihood import map_likelihood
from lurking.evidence.mled import mled
from lurking.evidence.point import point_of
from lurking.evidence.sampled.ais import annealed_importance_sampling, takes
from lurking.evidence.sampled.chib import chib
from lurking.evidence.sampled.importance import importance
from lurking.evidence.sampled.thermodynamic import thermodynamic
from lurking.evidence.sampled.wbic import wbic
from lurking.evidence.vb import variational_bayes, variational_fit

__all__ = ["SCORES"]

register("exact", exact)
register("map-likelihood", map_likelihood, fit_of=point_of)
register("bic", bic, fit_of=point_of)
register("bicp", bicp, fit_of=point_of)
register("draper", draper, fit_of=point_of)
register("adjusted-bic", adjusted_bic, fit_of=point_of)
register("mled", mled, fit_of=point_of)
register("cs", cheeseman_stutz, fit_of=point_of)
register("laplace", laplace, fit_of=mode_of)
register("vb", variational_bayes, fit_of=variational_fit)
register("ais", annealed_importance_sampling, takes=takes)
register("chib", chib)
register("importance", importance)
register("thermodynamic", thermodynamic)
register("wbic", wbic)
