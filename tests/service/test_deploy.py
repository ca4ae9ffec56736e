"""Files for running the service: they start commands that exist, and give them no more than needed.

They are built and started where there is Docker or systemd; here they are read.
"""

import re
import shlex
import stat
import subprocess
from pathlib import Path

import click
import pytest

from outsample.cli import main

FOLDER = Path(__file__).parents[2] / "deploy"
yaml = pytest.importorskip("yaml", reason="pyyaml is not installed")


def parsed(words):
    """Parse a command line of ours without running it."""
    assert words[0].endswith("outsample")
    name, *given = words[1:]
    command = main.get_command(None, name)
    with click.Context(command, info_name=name) as context:
        command.parse_args(context, list(given))
        return context.params


def instructions():
    text = (FOLDER / "Dockerfile").read_text().replace("\\\n", " ")
    return [line.split(maxsplit=1) for line in text.splitlines() if line and line[0] not in "# "]


def test_the_image_serves_as_nobody_in_particular():
    found = instructions()
    last = {name: words for name, words in found}
    assert last["USER"] == "10001" and "HEALTHCHECK" in last
    assert "/ready" in last["HEALTHCHECK"]
    given = [*yaml.safe_load(last["ENTRYPOINT"]), *yaml.safe_load(last["CMD"])]
    params = parsed(given)
    assert (params["host"], params["port"]) == ("0.0.0.0", int(last["EXPOSE"]))
    assert params["learned"].startswith(last["VOLUME"])
    ran = " ".join(words for name, words in found if name == "RUN")
    for command in re.findall(r"bin/outsample ([\w-]+)", ran):
        assert command in main.commands


def test_what_is_copied_into_the_image_is_there_and_not_left_out():
    root = FOLDER.parent
    copied = [words.split()[:-1] for name, words in instructions() if name == "COPY"]
    allowed = re.findall(r"^!(.+)$", (root / ".dockerignore").read_text(), re.M)
    for names in copied:
        if names[0].startswith("--from"):
            continue
        assert all((root / name).exists() and name in allowed for name in names)


def test_compose_gives_the_service_a_file_system_to_read_and_a_place_to_learn():
    told = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    for service in told["services"].values():
        assert service["read_only"] and service["cap_drop"] == ["ALL"]
        assert all(port.startswith("127.0.0.1:") for port in service["ports"])
    ours = told["services"]["outsample"]
    assert ours["environment"]["OUTSAMPLE_TOKEN"].startswith("${OUTSAMPLE_TOKEN:?")
    assert ours["environment"]["OUTSAMPLE_READ_TOKEN"].startswith("${OUTSAMPLE_READ_TOKEN:?")
    assert "learned:/learned" in ours["volumes"] and "../model:/model:ro" in ours["volumes"]
    scraped = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"][0]
    assert scraped["static_configs"][0]["targets"] == ["outsample:8000"]


def test_prometheus_can_read_its_token(tmp_path):
    """Its file had mode 600 and belonged to another user."""
    told = yaml.safe_load((FOLDER / "compose.yaml").read_text())["services"]["prometheus"]
    config = yaml.safe_load((FOLDER / "prometheus.yml").read_text())["scrape_configs"][0]
    inside = config["authorization"]["credentials_file"]
    (mounted,) = [one.split(":")[0] for one in told["volumes"] if one.split(":")[1] == inside]
    page = (FOLDER.parent / "docs" / "running.md").read_text()
    lines = [x for x in page.splitlines() if "deploy/secrets" in x and not x.startswith(" ")]
    (tmp_path / "deploy").mkdir()
    script = "umask 077; export OUTSAMPLE_READ_TOKEN=0123456789abcdef\n" + "\n".join(lines[:2])
    subprocess.run(["sh", "-ec", script], cwd=tmp_path, check=True)
    token = tmp_path / "deploy" / mounted
    assert token.read_text() == "0123456789abcdef"
    assert stat.S_IMODE(token.stat().st_mode) == 0o644  # read by Prometheus' own user
    assert stat.S_IMODE(token.parent.stat().st_mode) == 0o700  # by nobody else on the machine


def test_the_unit_starts_a_command_that_exists():
    text = (FOLDER / "outsample.service").read_text()
    (line,) = re.findall(r"^ExecStart=(.+)$", text, re.M)
    params = parsed(shlex.split(line))
    assert params["learned"].startswith("/var/lib/outsample") and params["host"] == "127.0.0.1"
    for rule in ("DynamicUser=yes", "ProtectSystem=strict", "NoNewPrivileges=yes"):
        assert rule in text
