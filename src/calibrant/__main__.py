"""The command ``calibrant``, also ``python -m calibrant``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say what it needs."""
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
