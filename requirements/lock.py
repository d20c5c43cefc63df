"""Write requirements/dev.txt: the exact versions that the current virtual environment holds, without dray itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HEADER = "# Written by `make lock`: the versions that dray was tested with.\n"


def main() -> None:
    frozen = subprocess.run(
        [sys.executable, "-m", "pip", "freeze", "--exclude-editable", "--disable-pip-version-check"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    lines = [line for line in frozen.splitlines() if "==" in line and not line.startswith("dray==")]
    target = Path(__file__).with_name("dev.txt")
    target.write_text(HEADER + "\n".join(lines) + "\n")
    print(f"{target.name}: {len(lines)} packages")


if __name__ == "__main__":
    main()
