"""Small real data sets that travel with the package, each row weighted by its count."""

from __future__ import annotations

from importlib import resources

from lurking.data.files import read
from lurking.data.table import Table


def carcinoma() -> Table:
    """Return ratings of 118 slides for carcinoma of the uterine cervix by seven pathologists A to G (0 no, 1 yes).

    Source: Landis and Koch (1977), An application of hierarchical kappa-type statistics in the assessment of majority
    agreement among multiple observers, Biometrics 33, 363-374; as printed in Agresti (2002), Categorical Data Analysis,
    second edition, Table 13.1.
    """
    return _bundled("carcinoma")


def stouffer_toby() -> Table:
    """Return the answers of 216 students to four situations A to D of role conflict, each 0 or 1.

    Source: Stouffer and Toby (1951), Role conflict and personality, American Journal of Sociology 56, 395-406.
    """
    return _bundled("stouffer_toby")


def gss82() -> Table:
    """Return two opinions on surveys and two interviewer ratings for 1202 respondents.

    Columns: PURPOSE and ACCURACY of surveys as the respondent sees them, UNDERSTA(nding) and COOPERAT(ion) as the
    interviewer rates them. Source: General Social Survey 1982, as in McCutcheon (1987), Latent Class Analysis.
    """
    return _bundled("gss82")


def _bundled(name: str) -> Table:
    with resources.as_file(resources.files("lurking.data").joinpath("bundled", f"{name}.csv")) as path:
        return read(path, weights="count")
