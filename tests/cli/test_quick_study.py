"""`lurking reproduce beal2006 --quick` as it is: the whole study in small, every part of it."""

import csv

import pytest

from lurking.experiments.beal2006 import study


@pytest.mark.long
def test_the_quick_study(done, folder):
    outcome = done("reproduce", "beal2006", "--quick")
    assert outcome.err == ""
    assert "VB below CS when it starts at the MAP point\n  paper: cannot be" in outcome.out
    assert "(corollary 6.2)\n  here:  0\n  holds" in outcome.out
    made = folder / "out" / "beal2006-quick"
    config = study.quick(study.Config())
    with (made / "table2.csv").open(newline="") as file:
        ranked = {int(row["n"]): row for row in csv.DictReader(file)}
    assert tuple(ranked) == config.sizes
    # The printed parameters' data are always the same: BIC's rank of the true structure falls as rows are added.
    ranks = [int(ranked[n]["bic"]) for n in config.sizes]
    assert ranks == sorted(ranks, reverse=True)
    assert ranks[0] > 100
    assert ranks[-1] < 40
    with (made / "table3.csv").open(newline="") as file:
        (violations,) = csv.DictReader(file)
    assert float(violations["variational path < VB*"]) == 0.0
    assert float(violations["AIS(1) < VB*"]) > 50.0  # 256 temperatures are far too few
    for name in ("figure2", "figure3", "figure4", "figure5", "figure6", "beyond", "approach"):
        assert (made / f"{name}.png").stat().st_size > 10_000
        assert (made / f"{name}.pdf").stat().st_size > 5_000
