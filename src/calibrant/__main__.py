"""The command ``calibrant``, also ``python -m calibrant``."""

from __future__ import annotations

import sys

from calibrant.cli.process import exit_codes, flush_streams, prepare_streams


def main() -> None:
    """Run the command line, or say what it needs."""
    prepare_streams()
    with exit_codes():
        try:
            _run()
        finally:
            flush_streams()


def _run() -> None:
    try:
        from calibrant.cli.app import run
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich", "click"):
            raise
        sys.stderr.write(
            f"The command line needs {error.name}, which is not installed; "
            f"install it with: pip install 'calibrant[cli]'\n"
        )
        sys.exit(2)
    run()


if __name__ == "__main__":
    main()
