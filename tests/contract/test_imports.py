"""Importing the library is cheap, has no effects, and imports go one way."""

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
REFUSED = {"numba", "duckdb", "matplotlib", "pandas", "jax"}

PROBE = """
import json, sys, time
begin = time.perf_counter()
import lurking
seconds = time.perf_counter() - begin
print(json.dumps({"seconds": seconds, "modules": sorted(name for name in sys.modules if "." not in name)}))
"""


def probe(code=PROBE):
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_import_takes_less_than_half_a_second():
    assert min(probe()["seconds"] for _ in range(3)) < 0.5


def test_import_leaves_heavy_libraries_alone():
    assert not REFUSED & set(probe()["modules"])


def test_reading_a_table_and_drawing_a_structure_need_no_compiler():
    code = PROBE.replace(
        "import lurking\n", "import lurking\nlurking.Dag.parse('s[2] -> a b')\nlurking.Prior.bdeu(1)\n"
    )
    assert not {"numba", "matplotlib", "duckdb"} & set(probe(code)["modules"])


def test_every_public_name_is_there():
    code = "import json, lurking\nprint(json.dumps({n: str(getattr(lurking, n)) for n in lurking.__all__}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    names = json.loads(done.stdout)
    assert {"Dag", "Table", "Prior", "Problem", "fit", "score", "compare", "Evidence", "Network"} <= set(names)


def test_imports_go_one_way(tmp_path):
    command = [str(Path(sys.executable).parent / "lint-imports"), "--cache-dir", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
