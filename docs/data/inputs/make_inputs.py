"""Write the files that the commands in the documentation read, next to this script.

All rows are simulated, so that what is true of them is known:

- churn.csv: a model trained with balanced classes, so its scores are too high;
- answers.jsonl: three language models that state how sure they are, in percent;
- clinic.csv: 150 patients of three hospitals, a risk that is too extreme;
- visits.csv: the same kind of risk, several visits per patient;
- logits.npz: an over-confident network with ten classes;
- lake: two days of a model that is over-confident in one of three countries.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import parquet
from scipy.special import expit, logit, softmax

FOLDER = Path(__file__).parent
OWN = 0.6
"""Share of visits whose outcome does not depend on the others of the patient."""


def write_csv(name: str, columns: dict[str, np.ndarray]) -> None:
    """Write columns as a CSV file."""
    with (FOLDER / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(zip(*(c.tolist() for c in columns.values()), strict=True))


def churn(rng: np.random.Generator, n: int = 4000) -> None:
    """Write scores of a model that was trained on balanced classes."""
    region = rng.choice(["north", "south", "east", "west"], n)
    logits = rng.normal(-2.2, 1.3, n)
    churned = rng.random(n) < expit(logits + 0.25 * (region == "west"))
    score = expit(logits - logit(churned.mean()))  # as many churners as others
    write_csv(
        "churn.csv",
        {
            "customer": np.arange(n),
            "region": region,
            "churned": np.where(churned, "yes", "no"),
            "score": score.round(5),
        },
    )


def answers(rng: np.random.Generator, n: int = 600) -> None:
    """Write answers of three models with stated confidences, rounded to 5 percent."""
    hard = rng.normal(0.4, 1.0, n)
    skill = {"ant": 0.3, "bee": 0.8, "cat": 0.5}
    boast = {"ant": 1.8, "bee": 1.1, "cat": 2.6}
    with (FOLDER / "answers.jsonl").open("w", encoding="utf-8") as file:
        for question in range(n):
            for model, level in skill.items():
                right = rng.random() < expit(level + hard[question])
                sure = expit(boast[model] * (level + 0.6 * hard[question]))
                row = {
                    "question": question,
                    "task": ("maths", "law", "code")[question % 3],
                    "model": model,
                    "confidence": int(5 * np.round(20 * sure)),
                    "correct": bool(right),
                }
                file.write(json.dumps(row) + "\n")


def patients(rng: np.random.Generator) -> None:
    """Write 150 patients, and 120 patients with several visits each."""
    risk = expit(rng.normal(-1.7, 1.2, 150))
    died = rng.random(150) < risk
    stated = expit(1.5 * np.log(risk / (1.0 - risk)) + 0.3)
    hospital = np.repeat(["A", "B", "C"], 50)
    columns = {"hospital": hospital, "risk": stated.round(4), "died": died.astype(int)}
    write_csv("clinic.csv", columns)
    patient = np.repeat(np.arange(120), rng.integers(2, 10, 120))
    level = rng.normal(-1.2, 1.0, 120)[patient]
    p = expit(level + rng.normal(0.0, 0.3, patient.size))
    same = rng.random(120)[patient]
    own = rng.random(patient.size) < OWN
    outcome = np.where(own, rng.random(patient.size), same) < p
    columns = {"patient": patient, "risk": p.round(4), "event": outcome.astype(int)}
    write_csv("visits.csv", columns)


def network(rng: np.random.Generator, n: int = 2000) -> None:
    """Write logits of ten classes that are twice as large as they should be."""
    shown = rng.integers(0, 10, n)
    logits = rng.normal(0.0, 1.0, (n, 10))
    logits[np.arange(n), shown] += rng.normal(2.0, 1.0, n)
    chance = softmax(1.2 * logits, axis=1)
    drawn = (chance.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, 9)
    np.savez(FOLDER / "logits.npz", y=drawn, logits=(2.0 * logits).astype(np.float32))


def lake(rng: np.random.Generator, n: int = 3000) -> None:
    """Write two days of predictions, one Parquet file per day."""
    (FOLDER / "lake").mkdir(exist_ok=True)
    for day in ("monday", "tuesday"):
        country = rng.choice(["EE", "FI", "LV"], n)
        logits = rng.normal(-1.0, 1.0, n)
        label = rng.random(n) < expit(logits)
        score = expit(np.where(country == "LV", 2.0, 1.0) * logits).round(4)
        columns = {"country": country, "score": score, "label": label.astype(np.int8)}
        parquet.write_table(pa.table(columns), FOLDER / "lake" / f"{day}.parquet")


if __name__ == "__main__":
    generator = np.random.default_rng(20261118)
    churn(generator)
    answers(generator)
    patients(generator)
    network(generator)
    lake(generator)
