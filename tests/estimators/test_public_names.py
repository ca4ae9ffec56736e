"""Every public name is documented with an example; doctests run it."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest

import outsample

DOCS = Path(__file__).parents[2] / "docs"
OVERVIEW = (DOCS / "api.md").read_text()
API = "".join(page.read_text() for page in sorted(DOCS.glob("api_*.md")))
NAMES = sorted(outsample.__all__)


def own_members(cls):
    """Yield the public methods and properties of a class that this package defines."""
    for name, member in inspect.getmembers(cls):
        code = member.fget if isinstance(member, property) else member
        code = inspect.unwrap(code) if callable(code) else code
        written_here = (getattr(code, "__module__", None) or "").startswith("outsample")
        if not name.startswith("_") and written_here and (callable(code) or inspect.isclass(code)):
            yield name, member


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_documented_with_an_example(name):
    documented = inspect.getdoc(getattr(outsample, name)) or ""
    assert len(documented.splitlines()) > 1, f"{name} has no docstring"
    if not (inspect.isclass(getattr(outsample, name)) and name.endswith("Error")):
        assert ">>> " in documented, f"{name} has no example"


@pytest.mark.parametrize("name", NAMES)
def test_its_methods_are_documented(name):
    public_object = getattr(outsample, name)
    if inspect.isclass(public_object):
        for member, value in own_members(public_object):
            assert inspect.getdoc(value), f"{name}.{member} has no docstring"


@pytest.mark.parametrize("name", NAMES)
def test_it_is_in_the_api_pages(name):
    assert f"`{name}`" in OVERVIEW, f"{name} is not in the table of docs/api.md"
    home = re.escape(getattr(outsample, name).__module__)
    assert re.search(rf"^::: {home}(\.{name})?$", API, re.MULTILINE), f"::: for {name} is missing"


def test_the_typed_client_uses_every_name_and_runs():
    source = (Path(__file__).parents[1] / "typed_client.py").read_text()
    for name in NAMES:
        assert len(re.findall(rf"\b{name}\b", source)) > 1, f"{name} is not in typed_client.py"
    import typed_client

    typed_client.main()


def test_types_are_shipped():
    assert (Path(outsample.__file__).parent / "py.typed").exists()


def test_what_the_root_lists_is_what_it_loads():
    assert set(outsample.__all__) == set(outsample._MODULES)
    assert set(outsample.__all__) <= set(dir(outsample))
