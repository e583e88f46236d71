"""Create the peers' environment, ``.bench-venv`` beside the project's own. Running it again changes nothing.

Python packages are those of ``peers.txt``; ``--heavy`` adds those of ``peers_heavy.txt``, which take gigabytes.
AutoClass C and faketime are Debian packages: they are installed only when this runs as root on a machine with
``apt-get``. What is missing has "not installed" on its row of the benchmark.
"""

import argparse
import os
import shutil
import subprocess
import venv
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parent
ENVIRONMENT = BENCHMARKS.parent / ".bench-venv"
PEERS = BENCHMARKS / "peers.txt"
HEAVY_PEERS = BENCHMARKS / "peers_heavy.txt"
SYSTEM_PACKAGES = ("autoclass", "faketime")
SYSTEM_TIMEOUT_SECONDS = 300


def peer_python() -> Path:
    """Path of the interpreter that runs the peers."""
    return ENVIRONMENT / "bin" / "python"


def make_environment() -> str:
    """Create the virtual environment if there is none."""
    if peer_python().exists():
        return "present"
    venv.create(ENVIRONMENT, with_pip=True)
    return "created"


def install_packages(wanted_file: Path) -> str:
    """Install the pinned packages of a list, unless the same list was installed before."""
    stamp = ENVIRONMENT / ("installed.txt" if wanted_file == PEERS else f"installed_{wanted_file.name}")
    wanted = wanted_file.read_text()
    if stamp.exists() and stamp.read_text() == wanted:
        return "present"
    # The first list constrains the second, so that heavy packages change no version of the others.
    command = [peer_python(), "-m", "pip", "install", "--quiet", "-r", wanted_file, "-c", PEERS]
    subprocess.run(command, check=True)
    stamp.write_text(wanted)
    return "installed"


def install_system_packages() -> str:
    """Install AutoClass C where that is possible; never fails."""
    missing = [name for name in SYSTEM_PACKAGES if shutil.which(name) is None]
    if not missing:
        return "present"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        return f"{' '.join(missing)} not installed: needs root and apt-get"
    for arguments in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *missing]):
        try:
            done = subprocess.run(
                ["apt-get", *arguments], check=False, capture_output=True, timeout=SYSTEM_TIMEOUT_SECONDS
            )
        except subprocess.TimeoutExpired:
            return f"{' '.join(missing)} not installed: apt-get took longer than {SYSTEM_TIMEOUT_SECONDS} s"
        if done.returncode != 0 and arguments[0] == "install":
            return f"{' '.join(missing)} not installed: apt-get ended with code {done.returncode}"
    return "installed"


def main() -> None:
    """Do every step and print one line for each."""
    parser = argparse.ArgumentParser(description="the peers' environment")
    parser.add_argument("--heavy", action="store_true", help="also the packages of peers_heavy.txt: gigabytes")
    options = parser.parse_args()
    print(f"environment {ENVIRONMENT.name}: {make_environment()}", flush=True)
    for wanted in (PEERS, HEAVY_PEERS) if options.heavy else (PEERS,):
        print(f"packages {', '.join(wanted.read_text().split())}: {install_packages(wanted)}", flush=True)
    print(f"Debian packages {', '.join(SYSTEM_PACKAGES)}: {install_system_packages()}", flush=True)


if __name__ == "__main__":
    main()
