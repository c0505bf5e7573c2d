"""The parts, their doors, and what importing one of them loads.

These tests look at tenure where it was imported from, so that they hold for the sources
and for a wheel.
"""

import ast
import json
import pkgutil
import re
import subprocess
import sys
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

import pytest

import tenure

PARTS = ("cli", "detectors", "instrumentation", "runtime")
ROOT = Path(__file__).parents[1]
LONGEST_MODULE = 450
VOCABULARY = ("_facts", "attributes", "listeners", "operations", "process", "semconv")


def folder(part: str) -> Path:
    (path,) = import_module(f"tenure.{part}").__path__
    return Path(path)


def modules() -> list[Path]:
    return [path for part in PARTS for path in sorted(folder(part).rglob("*.py"))]


def loaded_by(statement: str) -> set[str]:
    """Return what a new interpreter has loaded after `statement`."""
    program = f"{statement}\nimport sys, json\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-I", "-c", program],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(json.loads(done.stdout))


def inside(loaded: set[str], *packages: str) -> set[str]:
    """Return which of `loaded` are one of `packages`, or in one."""
    return {
        name
        for name in loaded
        if any(
            name == package or name.startswith(f"{package}.") for package in packages
        )
    }


def offered(tree: ast.Module) -> set[str]:
    """Return the public names that a module defines, or imports from tenure."""
    names: set[str] = set()
    for node in tree.body:
        # What only type checkers see is offered as well: it is loaded when asked for.
        for statement in node.body if isinstance(node, ast.If) else [node]:
            match statement:
                case ast.ImportFrom(module=str(module)) if module.startswith("tenure."):
                    names |= {alias.asname or alias.name for alias in statement.names}
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                    names.add(statement.name)
                case ast.AnnAssign(target=ast.Name(id=name)):
                    names.add(name)
                case ast.Assign(targets=[ast.Name(id=name)]):
                    names.add(name)
    return {name for name in names if not name.startswith("_")}


def used(tree: ast.Module) -> set[str]:
    """Return the names that the functions of a module use."""
    return {
        node.id
        for function in tree.body
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Name)
    }


def in_reading_order(name: str) -> tuple[int, str]:
    """Constants, classes, functions: the order that ruff asks of `__all__`."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


class TestNamespace:
    def test_no_folder_of_the_namespace_is_a_package_of_its_own(self):
        # One would hide the other source roots of an editable install.
        assert [
            path for path in tenure.__path__ if list(Path(path).glob("*.py*"))
        ] == []
        assert tenure.__file__ is None

    def test_the_namespace_holds_the_parts_and_nothing_else(self):
        found = {module.name for module in pkgutil.iter_modules(tenure.__path__)}
        assert found == set(PARTS)

    def test_the_version_is_asked_of_the_distribution(self):
        assert re.fullmatch(r"\d+\.\d+\.\d+.*", version("tenure"))
        assert not hasattr(tenure, "__version__")
        for part in PARTS:
            assert not hasattr(import_module(f"tenure.{part}"), "__version__")


@pytest.mark.parametrize("part", PARTS)
class TestDoors:
    def test_a_part_says_that_it_is_typed(self, part):
        assert (folder(part) / "py.typed").is_file()

    def test_the_door_is_complete(self, part):
        tree = ast.parse((folder(part) / "__init__.py").read_text("utf-8"))
        door = set(import_module(f"tenure.{part}").__all__)
        assert offered(tree) - used(tree) <= door <= offered(tree)

    def test_the_door_is_in_order_and_names_nothing_twice(self, part):
        door = import_module(f"tenure.{part}").__all__
        assert list(door) == sorted(set(door), key=in_reading_order)

    def test_whatever_the_door_names_can_be_had(self, part):
        module = import_module(f"tenure.{part}")
        assert [name for name in module.__all__ if not hasattr(module, name)] == []

    def test_a_name_that_the_door_does_not_know_is_an_attribute_error(self, part):
        assert not hasattr(import_module(f"tenure.{part}"), "no_such_name")


class TestModules:
    def test_every_module_can_be_imported(self):
        names = [
            module.name
            for module in pkgutil.walk_packages(tenure.__path__, "tenure.")
            if not module.name.endswith("__main__")
        ]
        assert len(names) > len(PARTS)
        loaded = loaded_by("\n".join(f"import {name}" for name in names))
        assert set(names) <= loaded

    def test_no_module_is_too_long_to_read(self):
        long = {
            str(path): lines
            for path in modules()
            if (lines := len(path.read_text("utf-8").splitlines())) > LONGEST_MODULE
        }
        assert long == {}

    def test_no_part_reaches_into_the_private_modules_of_another(self):
        private = re.compile(r"tenure\.(\w+)\.(?:\w+\.)*_(?!_)\w+")
        reached = {
            (str(path), node.module)
            for part in PARTS
            for path in folder(part).rglob("*.py")
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.ImportFrom)
            and (match := private.match(node.module or ""))
            and match[1] != part
        }
        assert reached == set()

    @pytest.mark.parametrize("name", VOCABULARY)
    def test_the_vocabulary_imports_the_standard_library_and_itself(self, name):
        tree = ast.parse((folder("instrumentation") / f"{name}.py").read_text("utf-8"))
        own = {f"tenure.instrumentation.{module}" for module in VOCABULARY}
        imported: set[str] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                imported |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                base = node.module or ""
                package = base == "tenure.instrumentation"
                imported |= {
                    f"{base}.{alias.name}" if package else base for alias in node.names
                }
        strange = {
            module
            for module in imported - own
            if module.partition(".")[0] not in sys.stdlib_module_names
        }
        assert strange == set()


class TestWhatAnImportLoads:
    def test_the_detectors_load_no_engine_and_no_sdk(self):
        loaded = loaded_by("import tenure.detectors")
        assert "tenure.detectors" in loaded
        assert not inside(loaded, "tenure.runtime", "tenure.cli", "anyio")
        assert not inside(loaded, "opentelemetry.sdk")

    def test_the_runtime_loads_no_sdk_and_no_detector(self):
        loaded = loaded_by("import tenure.runtime")
        assert "tenure.runtime" in loaded
        assert not inside(loaded, "tenure.detectors", "tenure.cli")
        assert not inside(loaded, "opentelemetry.sdk", "opentelemetry.exporter")

    def test_the_instrumentation_loads_neither_engine_nor_detector_nor_sdk(self):
        loaded = loaded_by("import tenure.instrumentation")
        assert "tenure.instrumentation" in loaded
        assert not inside(loaded, "tenure.runtime", "tenure.detectors", "tenure.cli")
        assert not inside(loaded, "opentelemetry.sdk", "wrapt", "agent_framework")

    def test_the_span_processor_is_what_loads_the_sdk(self):
        loaded = loaded_by("from tenure.detectors import OwnershipSpanProcessor")
        assert inside(loaded, "opentelemetry.sdk.trace")
        assert not inside(loaded, "tenure.runtime", "anyio")

    def test_the_command_line_loads_no_foreign_engine_until_it_is_asked(self):
        loaded = loaded_by("import tenure.cli._app")
        assert not inside(loaded, "agent_framework")


class TestGround:
    def test_every_target_of_make_that_the_guide_names_exists(self):
        makefile = (ROOT / "Makefile").read_text("utf-8")
        targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
        guide = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
        named = set(re.findall(r"(?:^|`)make ([a-z-]+)", guide, re.MULTILINE))
        assert {"demo", "test", "check"} <= named <= targets
