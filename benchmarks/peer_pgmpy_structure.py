"""pgmpy: structures learnt by BDeu from complete rows. ``python peer_pgmpy_structure.py alarm.csv``."""

import logging
import sys
from time import perf_counter

import pandas as pd
import pgmpy
from pgmpy.causal_discovery import GES
from pgmpy.structure_score import BDeu

from timing import report


def main(path: str) -> None:
    """Time one greedy equivalence search, with equivalent sample size 1."""
    logging.disable(logging.WARNING)
    rows = pd.read_csv(path, dtype="category").apply(lambda column: column.cat.codes.astype(int))
    begin = perf_counter()
    found = GES(scoring_method=BDeu(rows, equivalent_sample_size=1.0), return_type="dag").fit(rows)
    seconds = perf_counter() - begin
    edges = [list(edge) for edge in found.causal_graph_.edges()]
    report("pgmpy", pgmpy.__version__, {"ges": seconds}, structures={"ges": edges}, rows=len(rows))


if __name__ == "__main__":
    main(sys.argv[1])
