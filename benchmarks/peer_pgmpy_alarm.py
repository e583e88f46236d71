"""pgmpy: what its EM does with empty cells. ``python peer_pgmpy_alarm.py alarm.bif alarm_5000.csv``."""

import json
import logging
import sys

import pandas as pd
import pgmpy
from pgmpy.models import DiscreteBayesianNetwork
from pgmpy.parameter_estimator import DiscreteEM
from pgmpy.readwrite import BIFReader


def main(network: str, path: str) -> None:
    """Try two iterations and print what came of it."""
    logging.disable(logging.WARNING)
    edges = list(BIFReader(network).get_model().edges())
    data = pd.read_csv(path, dtype=str)
    line = {"peer": "pgmpy", "pgmpy": pgmpy.__version__, "rows": len(data), "rows_without_empty": len(data.dropna())}
    try:
        DiscreteEM(max_iter=2, seed=0, show_progress=False).fit(DiscreteBayesianNetwork(edges), data)
        line["error"] = "made two iterations"
    except Exception as failure:  # whatever it raises is the result
        line["error"] = f"{type(failure).__name__}: {str(failure)[:80]}"
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:3])
