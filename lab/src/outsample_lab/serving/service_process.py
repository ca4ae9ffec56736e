"""A service in its own process at a free local port, as a context manager."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

PROGRAM = "from outsample.cli import main; main()"
SECONDS_TO_END = 30


class ServiceProcess:
    """``outsample serve MODEL``, until the block ends.

    Parameters
    ----------
    model : path-like
        A model file.
    options : str
        More options of the command.
    """

    def __init__(self, model: str | os.PathLike[str], *options: str) -> None:
        self.command = [sys.executable, "-c", PROGRAM, "serve", os.fspath(model), "--port", "0"]
        self.command += options

    def __enter__(self) -> ServiceProcess:
        # Without a token, which the measured requests do not send.
        tokens = ("OUTSAMPLE_TOKEN", "OUTSAMPLE_READ_TOKEN")
        environment = {name: value for name, value in os.environ.items() if name not in tokens}
        self.process = subprocess.Popen(self.command, stderr=subprocess.PIPE, env=environment)
        line = b""
        for line in self._lines:
            if b'"listening"' in line:
                break
        else:
            raise RuntimeError(f"the service did not start: {line.decode().strip()}")
        self.port = int(json.loads(line)["listening"].rpartition(":")[2])
        threading.Thread(target=self._drain, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self.process.terminate()
        try:
            self.process.wait(SECONDS_TO_END)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    @property
    def megabytes(self) -> float:
        """Memory of the process in MB, without mapped files; NaN if unknown."""
        status = Path(f"/proc/{self.process.pid}/status")
        if not status.exists():
            return float("nan")
        lines = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        return float(lines["RssAnon"].split()[0]) * 1024 / 1e6

    @property
    def _lines(self) -> Any:
        return self.process.stderr

    def _drain(self) -> None:
        """Read the log of the service in large blocks, so that its pipe does not fill."""
        while self._lines.read1(2**20):
            pass
