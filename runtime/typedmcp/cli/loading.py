"""Finding the server in a Python file or module.

Rules:
- Nothing a module prints while it is imported reaches standard output: that belongs to messages and results.
- A file's folder goes first on ``sys.path``, as with ``python file.py``; a file in a package is imported as part of it.
  A module is looked for in the current folder first, as with ``python -m``.
- The server is the attribute asked for; otherwise the one called ``app``; otherwise the only one there is.  A function
  asked for by name is called, without arguments, and what it returns is served.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import inspect
import itertools
import os
import re
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple

from typedmcp.cli.output import Failure, Misuse, Unreachable

if TYPE_CHECKING:
    from typedmcp.server.app import App
    from typedmcp.server.server import MCPServer

_LIBRARY = Path(__file__).parent.parent
_NAME = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*")


class Spec(NamedTuple):
    """Where a server is: a file or a module, and perhaps its name in there."""

    place: str
    name: str | None
    is_file: bool

    def __str__(self) -> str:
        return self.place if self.name is None else f"{self.place}:{self.name}"


def read_spec(text: str) -> Spec | None:
    """What MODULE_OR_FILE[:NAME] says; None when the text is neither a file's name nor a module's."""
    if _is_file(text):
        return Spec(text, None, True)
    place, colon, name = text.rpartition(":")
    if not colon or not _NAME.fullmatch(name):
        place, name = text, ""
    if _is_file(place):
        return Spec(place, name or None, True)
    return Spec(place, name or None, False) if _NAME.fullmatch(place) else None


def _is_file(text: str) -> bool:
    return text.endswith((".py", ".pyw")) and (" " not in text or os.path.isfile(text))


def load_server(spec: Spec) -> MCPServer:
    """Import the place and find the server in it; of an App, the engine it compiles to.

    Raises:
        Failure: there is no such place, importing it failed, or there is no server, or more than one.
    """
    with quiet_output(), _reported(spec.place):
        module = _import_file(Path(spec.place)) if spec.is_file else _import_module(spec.place)
    from typedmcp.server.app import App

    found = _find(module, spec)
    return found.server if isinstance(found, App) else found


@contextmanager
def quiet_output() -> Generator[None]:
    """Send whatever is written to standard output, by Python, C or a child process, to standard error."""
    from typedmcp.transports.stdio.standard import set_output_aside

    aside = set_output_aside()
    try:
        yield
    finally:
        aside.give_back()


# -- importing ---------------------------------------------------------------------------------------------------------


def _import_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise Misuse(_no_file(path))
    path = path.resolve()
    folder, names = path.parent, [] if path.stem == "__init__" else [path.stem]
    while (folder / "__init__.py").is_file():
        names.insert(0, folder.name)
        folder = folder.parent
    _look_in(str(folder))
    return importlib.import_module(".".join(names)) if len(names) > 1 else _execute(path, names[0])


def _execute(path: Path, name: str) -> ModuleType:
    """Run a file that is in no package."""
    if name in sys.modules:
        # Called like a module that is loaded already, such as `json` or `typedmcp`: that one must stay what it is.
        name = f"typedmcp_served_{name}"
    found = importlib.util.spec_from_file_location(name, path)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module
    try:
        found.loader.exec_module(module)
    except BaseException:
        sys.modules.pop(name, None)
        raise
    return module


def _import_module(name: str) -> ModuleType:
    _look_in(os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
        advice = "name its file instead, or install it in the environment of " + sys.executable
        raise Misuse(f"There is no module {error.name!r} here or on sys.path; {advice}.") from None


def _look_in(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)


def _no_file(path: Path) -> str:
    if not path.parent.is_dir():
        return f"There is no folder {str(path.parent)!r}; the current one is {os.getcwd()!r}."
    near = sorted(entry.name for entry in path.parent.glob("*.py"))
    close = difflib.get_close_matches(path.name, near, 3, 0.5) or near[:5]
    advice = f"that folder has {', '.join(close)}" if close else "that folder has no Python file"
    return f"There is no file {str(path)!r}; {advice}."


# -- failing imports ---------------------------------------------------------------------------------------------------


@contextmanager
def _reported(place: str) -> Generator[None]:
    """Turn whatever foreign code raises into a failure that shows where it came from."""
    try:
        yield
    except (Failure, KeyboardInterrupt):
        raise
    except SystemExit as error:
        text = f"{place} ended the process while it was imported (exit code {error.code!r})"
        raise Unreachable(f"{text}.\n{_GUARD}") from None
    except BaseException as error:  # whatever foreign code may raise
        raise Unreachable(_import_trouble(place, error)) from error


_GUARD = 'Put what runs the program under `if __name__ == "__main__":`.'


def _import_trouble(place: str, error: BaseException) -> str:
    """The last lines of the traceback that are the author's own, and what to do."""
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    before = (str(_LIBRARY), "<frozen", str(importlib.__file__))
    theirs = itertools.dropwhile(lambda frame: frame.filename.startswith(before), frames)
    shown = list(itertools.takewhile(lambda frame: not frame.filename.startswith(str(_LIBRARY)), theirs))[-3:]
    where = f", line {shown[-1].lineno} of {shown[-1].filename}" if shown else ""
    if isinstance(error, SyntaxError) and error.filename:
        where = f", line {error.lineno} of {error.filename}"
    lines = [*traceback.format_list(shown), *traceback.format_exception_only(error)]
    text = f"Importing {place} failed{where}:\n{''.join(lines).rstrip()}"
    if isinstance(error, ModuleNotFoundError):
        text += f"\nInstall {error.name!r} in the environment of {sys.executable}, or correct the import."
    if any(frame.filename == str(_LIBRARY / "serving.py") for frame in frames):
        text += f"\nThe module serves while it is imported. {_GUARD}"
    return text


# -- finding the server ------------------------------------------------------------------------------------------------


def _find(module: ModuleType, spec: Spec) -> App | MCPServer:
    from typedmcp.server.app import App
    from typedmcp.server.server import MCPServer

    members = {name: value for name, value in vars(module).items() if isinstance(value, (App, MCPServer))}
    if spec.name is not None:
        value = _attribute(module, spec, members)
        if isinstance(value, (App, MCPServer)):
            return value
        advice = f"name one of {', '.join(members)}" if members else _HOW
        raise Misuse(f"{spec} is no App or MCPServer but {_article(value)}; {advice}.")
    if "app" in members:
        return members["app"]
    distinct = {id(getattr(value, "server", value)): value for value in reversed(members.values())}
    if len(distinct) == 1:
        return next(iter(distinct.values()))
    if members:
        each = ", ".join(f"{spec.place}:{name}" for name in members)
        raise Misuse(f"{spec.place} has several servers; name one: {each}.")
    raise Misuse(f"{spec.place} has no App or MCPServer{_instead(module, spec)}; {_HOW}.")


_HOW = 'add `app = App("name", "1.0.0")`; a server of another library is named by its command: "python FILE"'


def _attribute(module: ModuleType, spec: Spec, members: dict[str, App | MCPServer]) -> Any:
    """What the spec names, called if it is a function."""
    value: Any = module
    for part in str(spec.name).split("."):
        if not hasattr(value, part):
            close = difflib.get_close_matches(part, vars(module), 3) or list(members)
            advice = f"did you mean {' or '.join(close)}?" if close else f"{_HOW}."
            raise Misuse(f"{spec.place} has no {spec.name!r}; {advice}")
        value = getattr(value, part)
    if inspect.isfunction(value):
        with quiet_output(), _reported(str(spec)):
            return value()
    return value


def _instead(module: ModuleType, spec: Spec) -> str:
    """What the module has where a server was expected: an ``app`` of another kind, or functions that may make one."""
    if hasattr(module, "app"):
        return f" (its `app` is {_article(module.app)})"
    makers = [
        name
        for name, value in vars(module).items()
        if inspect.isfunction(value) and re.search("app|server", name) and value.__module__ == module.__name__
    ]
    return f" (if {makers[0]} makes one, name it: {spec.place}:{makers[0]})" if makers else ""


def _article(value: object) -> str:
    kind = type(value)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
