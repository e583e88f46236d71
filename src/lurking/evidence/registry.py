"""The scores, one line each; the order is the order in tables."""

from __future__ import annotations

from lurking.evidence.base import register
from lurking.evidence.bic import bic
from lurking.evidence.bicp import bicp
from lurking.evidence.cs import cheeseman_stutz
from lurking.evidence.draper import draper
from lurking.evidence.exact import exact
from lurking.evidence.map_likelihood import map_likelihood
from lurking.evidence.mled import mled
from lurking.evidence.vb import variational_bayes

register("exact", exact)
register("map-likelihood", map_likelihood)
register("bic", bic)
register("bicp", bicp)
register("draper", draper)
register("mled", mled)
register("cs", cheeseman_stutz)
register("vb", variational_bayes)
