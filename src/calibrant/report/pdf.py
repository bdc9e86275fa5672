"""A page printed to PDF by an installed Chromium, which knows its styles."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from calibrant.exceptions import MissingDependencyError

VARIABLE = "CALIBRANT_CHROMIUM"
"""Environment variable with the path of a browser."""
BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
)
FLAGS = (
    "--headless",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-pdf-header-footer",
)
SECONDS = 120


def find_browser() -> str:
    """Return the path of Chromium or a relative of it, or say what to install."""
    named = os.environ.get(VARIABLE)
    names = (named,) if named else BROWSERS
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        looked = (
            f"{VARIABLE} names {named}, which is not a program"
            if named
            else ("none was found")
        )
        raise MissingDependencyError(
            f"a PDF report needs Chromium, Chrome or Edge; {looked}. Install one (for "
            f"example: apt install chromium), or set {VARIABLE} to its path. Or save "
            "the report as .html, and print that page to PDF in any browser."
        )
    return found


def print_page(page: str, path: Path) -> None:
    """Write a page as a PDF file, with all that it folds opened."""
    # Browsers before 2025 cannot do that by the style of the page.
    page = page.replace("<details", "<details open")
    browser = find_browser()
    with tempfile.TemporaryDirectory() as folder:
        source, printed = Path(folder, "report.html"), Path(folder, "report.pdf")
        source.write_text(page, encoding="utf-8")
        flags = [*FLAGS, f"--user-data-dir={folder}/profile"]
        if getattr(os, "geteuid", lambda: 1)() == 0:  # as root it has no sandbox
            flags.append("--no-sandbox")
        run = subprocess.run(  # noqa: S603  (a browser, and a page of our own)
            [browser, *flags, f"--print-to-pdf={printed}", source.as_uri()],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
        if not printed.is_file():
            raise OSError(
                f"{path} cannot be written: {browser} ended with status "
                f"{run.returncode} and printed no page. It said: "
                f"{run.stderr.strip()[-400:] or 'nothing'}"
            )
        shutil.copyfile(printed, path)
