"""Copy a few rows of the paper's own results on its synthetic data.

Needs the folder of shared data, which is not part of the project. Rows were made
with the authors' published code; ``tests/calibrators/test_paper_rows.py`` compares.
"""

from __future__ import annotations

import csv
import gzip
import json
import sys
from pathlib import Path

GOLDEN = Path(__file__).with_name("paper_rows.json")
METHODS = ("platt", "beta", "isotonic")
ERRORS = (0.0, 0.05, 0.1)
SEED = 1


def wanted(row):
    return (
        row["method"] in METHODS
        and float(row["error"]) in ERRORS
        and int(row["seed"]) == SEED
    )


def main(folder):
    path = Path(folder) / "reference" / "paper_code_synthetic.csv.gz"
    with gzip.open(path, "rt", encoding="ascii") as lines:
        rows = [
            {
                "method": row["method"],
                "shape": row["shape"],
                **{k: float(row[k]) for k in ("error", "ece", "ece_sq", "map_error")},
                **{k: int(row[k]) for k in ("n", "seed")},
            }
            for row in csv.DictReader(lines)
            if wanted(row)
        ]
    GOLDEN.write_text(json.dumps(rows, indent=0) + "\n", encoding="ascii")


if __name__ == "__main__":
    main(sys.argv[1])
