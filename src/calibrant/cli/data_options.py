"""Which predictions a command is about: options, parsed into predictions.

Every command that reads predictions takes the same options, which are stated here once
and reach it as one value.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_type_hints

import typer

from calibrant.cli.options import (
    label_columns,
    models,
    named_list,
    scales,
    split_list,
)
from calibrant.core.defaults import MAX_DROPPED
from calibrant.core.parameters import check_choice
from calibrant.exceptions import OptionError

if TYPE_CHECKING:
    from collections.abc import Callable

    from calibrant.engines.files import FileSet
    from calibrant.engines.opening import Table
    from calibrant.predictions.predictions import Predictions


@dataclass(frozen=True, kw_only=True)
class DataOptions:
    """Which predictions are meant, as typed."""

    source: Annotated[
        list[str],
        typer.Argument(
            help="CSV, TSV, Parquet, JSON, npz or npy files, a folder, a pattern such "
            "as 'lake/*.parquet', or aggregated predictions written by "
            "'calibrant aggregate'.",
            metavar="FILE...",
        ),
    ]
    y: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of labels. If each model has its own, name=column for each; "
            "a==b tests whether two columns are equal.",
        ),
    ] = None
    p: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMNS",
            help="Column(s) of probabilities, a,b,c. Each column is a model; with "
            "--task the columns are the classes of one model. Repeat for several "
            "models. 'forest_*' selects all matching columns; name=... names a "
            "model; quote names that contain a comma or =, '\"a,b\"'.",
        ),
    ] = None
    task: Annotated[
        str | None,
        typer.Option(
            metavar="TASK",
            help="confidence (the top label), classwise (average over classes), "
            "canonical (all class probabilities at once; for evaluate), "
            "multilabel (average over labels, if a row can have several; npz "
            "matrices), or one class.",
        ),
    ] = None
    by: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMNS",
            help="Column(s) that define groups, a,b; 'filename' makes one group per "
            "file.",
        ),
    ] = None
    model: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column that names the model of each row; 'filename' makes one model "
            "per file.",
        ),
    ] = None
    id_: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="COLUMNS",
            help="With --model: column that identifies the same case across models, "
            "or several columns that do so together, a,b; 'row' pairs rows by number "
            "if each model has a file with the same labels in the same order.",
        ),
    ] = None
    weight: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Column of sample weights.")
    ] = None
    cluster: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            help="Column that identifies rows that belong together, such as those of a "
            "patient or prompt: intervals and tests then allow for their dependence.",
        ),
    ] = None
    pos_label: Annotated[
        str | None,
        typer.Option(metavar="LABEL", help="Label that counts as the event."),
    ] = None
    labels: Annotated[
        str | None,
        typer.Option(metavar="LABELS", help="Label of each class column, a,b,c."),
    ] = None
    scale: Annotated[
        list[str] | None,
        typer.Option(
            metavar="SCALE",
            help="What the columns contain: prob, logit, percent (0 to 100) or "
            "logprob; if models in separate columns have different scales, name=logit "
            "for each. Models named by --model share a column and a scale.",
            show_default="prob",
        ),
    ] = None
    engine: Annotated[
        str,
        typer.Option(
            metavar="ENGINE",
            help="memory or duckdb; auto uses memory for files that fit.",
        ),
    ] = "auto"
    bad_rows: Annotated[
        str,
        typer.Option(
            metavar="ACTION",
            help="What to do with invalid rows: error or drop.",
        ),
    ] = "error"
    max_dropped: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="With --bad-rows drop: maximum share of rows that may be dropped.",
        ),
    ] = MAX_DROPPED

    def predictions(
        self, *, rows_for: str = "", prefer_memory: bool = False
    ) -> Predictions:
        """Return the predictions that the options describe.

        `rows_for` says what needs rows in memory, and cannot be computed from
        aggregated predictions. With `prefer_memory`, several files are read into
        memory too, if they fit.
        """
        aggregated = self.aggregated(rows_for)
        if aggregated is None:
            in_memory = rows_for or self._needs_memory()
            in_memory = in_memory or (prefer_memory and self._fits_in_memory())
            return self.predictions_in(self.open_rows(in_memory=bool(in_memory)))
        for option in fields(self):
            given = getattr(self, option.name)
            if option.name not in ("source", "by") and given != option.default:
                raise OptionError(
                    f"aggregated predictions already fix columns, labels and scale; "
                    f"remove --{option.name.strip('_').replace('_', '-')}."
                )
        if self.by is None:
            return aggregated
        return aggregated.grouped_by(split_list(self.by))  # by none of them: all rows

    def say_if_pooled(self, preds: Predictions) -> None:
        """Say how many files are taken together, where nothing separates their rows."""
        from calibrant.engines.files import FILE_COLUMN, find_files

        aggregates = self.y is None  # which are made to be added up
        if aggregates or self.model is not None or FILE_COLUMN in self.groups:
            return
        count = preds.store.n_parts
        count = len(find_files(self.source).paths) if count is None else count
        if count > 1:
            typer.echo(
                f"the rows of {count:,} files are taken together; --by {FILE_COLUMN} "
                f"separates them, and --model {FILE_COLUMN} makes each a model.",
                err=True,
            )

    def predictions_in(self, table: Table) -> Predictions:
        """Return the predictions in an open table."""
        from calibrant.predictions.predictions import Predictions

        if not self.y or not self.p:
            raise OptionError(
                "--y must name the column of labels and --p the columns of "
                f"probabilities. Columns are: {', '.join(table.names)}."
            )
        label = label_columns(table.names, self.y)
        first = label if isinstance(label, str) else next(iter(label.values()))
        return Predictions.from_table(
            table,
            y=label,
            p=models(self.p, self.task),
            by=self.groups,
            model=self.model,
            id=named_list(self.id_, "--id"),
            weight=self.weight,
            cluster=self.cluster,
            scale=scales(self.scale),
            bad_rows=self.bad_rows,  # type: ignore[arg-type]
            max_dropped=self.max_dropped,
            **typed_options(table, first, self.task, self.pos_label, self.labels),
        )

    @property
    def groups(self) -> list[str]:
        """Return the columns of groups."""
        return named_list(self.by, "--by")

    def aggregated(self, rows_for: str = "") -> Predictions | None:
        """Return the aggregated predictions in the files; None where they hold rows."""
        from calibrant.engines.opening import open_cells
        from calibrant.predictions.aggregates import AggregatedPredictions
        from calibrant.predictions.predictions import Predictions

        self._check_no_column_is_a_file()
        cells = open_cells(self.files)
        if cells is None:
            return None
        if rows_for:
            raise OptionError(
                f"{self.source[0]} contains aggregated predictions, which are not "
                f"enough for {rows_for}; pass the original files of rows. "
                "'calibrant evaluate' accepts aggregated predictions."
            )
        return Predictions(AggregatedPredictions(cells))

    def _check_no_column_is_a_file(self) -> None:
        """Raise where a column after a blank was taken for a further file."""
        first, *more = self.source
        columns = [one for one in more if not Path(one).suffix]
        stray = [one for one in columns if not Path(one).exists()]
        if self.p and Path(first).exists() and stray:
            raise OptionError(
                f"{stray[0]} does not exist. Columns of one option are separated by "
                f"commas: --p {','.join([*self.p, *stray])}."
            )

    def open_rows(self, *, in_memory: bool = False) -> Table:
        """Open the files of rows by the engine that was asked for."""
        from calibrant.engines.aggregation_spec import BadRows
        from calibrant.engines.opening import open_source

        check_choice(self.bad_rows, get_args(BadRows), name="--bad-rows")
        check_choice(self.engine, ("auto", "memory", "duckdb"), name="--engine")
        engine: Any = "memory" if in_memory else self.engine
        if in_memory and self.engine not in ("auto", "memory"):
            raise OptionError("this command reads rows in memory; remove --engine.")
        bad_rows: Any = self.bad_rows
        return open_source(self.files, engine, bad_rows=bad_rows)

    def _needs_memory(self) -> bool:
        from calibrant.engines.opening import needs_memory

        columns = [*(self.y or ()), self.model, self.cluster, *self.groups]
        return needs_memory([*columns, *split_list(self.id_)])

    def _fits_in_memory(self) -> bool:
        from calibrant.engines.memory import MAX_FILES_IN_MEMORY

        return self.engine == "auto" and self.files.size <= MAX_FILES_IN_MEMORY

    @cached_property
    def files(self) -> FileSet:
        """Return the files that are meant."""
        from calibrant.engines.files import find_files

        return find_files(self.source)

    def describe(self) -> str:
        """Return what to call the files: names without folders."""
        more = f" and {len(self.source) - 1} more" if len(self.source) > 1 else ""
        return Path(self.source[0]).name + more


def takes_predictions(*without: str) -> Callable[..., Callable[..., None]]:
    """Give a command the options of `DataOptions`, but for some, as its first argument.

    The command line shows each as an option of the command.
    """
    hints = get_type_hints(DataOptions, include_extras=True)
    shared = [
        inspect.Parameter(
            option.name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=hints[option.name],
            **({} if option.name == "source" else {"default": option.default}),
        )
        for option in fields(DataOptions)
        if option.name not in without
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        _, *own = inspect.signature(command, eval_str=True).parameters.values()

        @wraps(command)
        def run(**typed: Any) -> None:
            data = {one.name: typed.pop(one.name) for one in shared}
            command(DataOptions(**data), **typed)

        keyword = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in own]
        parameters = [*shared, *keyword]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {one.name: one.annotation for one in parameters}
        return run

    return decorate


def check_not_source(files: FileSet, written: Path) -> None:
    """Raise if a file that would be written is one of those that are read."""
    if written.exists() and any(written.samefile(path) for path in files.paths):
        raise OptionError(
            "--out must not be one of the input files; choose another name."
        )


def typed_options(
    table: Table,
    y: str,
    task: str | None,
    pos_label: str | None,
    labels: str | None,
) -> dict[str, Any]:
    """Return task and labels, typed as text, in the type of the label column.

    The whole column may have to be read to find its type. A task is the label of a
    class if the column contains it, else a column number.
    """
    from calibrant.predictions.columns import NOT_A_CLASS, typed_like

    def typed(text: str) -> Any:
        return typed_like(table.dtype_example(y), text)

    meant: Any = task
    if task not in NOT_A_CLASS:
        label = typed(str(task))
        is_number = str(task).isdecimal() and not table.contains(y, label)
        meant = int(str(task)) if is_number else label
    return {
        "task": meant,
        "pos_label": None if pos_label is None else typed(pos_label),
        "labels": [typed(part) for part in named_list(labels, "--labels")] or None,
    }
