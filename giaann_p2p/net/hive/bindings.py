"""The two files of hivemind that name p2pd's messages and addresses, without hivemind itself.

`import hivemind` takes more than a second, because it imports torch, and importing any of its
modules imports all of it first. A client that only calls other peers needs no more of hivemind than
these two files. So they are loaded from where hivemind is installed, under names of this package:
if hivemind is imported as well, its own copies stay apart.
"""

import sys
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType


def _folder() -> Path:
    """Return the folder in which hivemind is installed, without importing hivemind."""
    found = find_spec("hivemind")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError("hivemind is not installed; install giaann-p2p again")
    return Path(found.submodule_search_locations[0])


def _loaded(name: str, file: Path) -> ModuleType:
    """Load a module from its file; a package's file is its `__init__.py`."""
    inside = [str(file.parent)] if file.name == "__init__.py" else None
    name = f"{__package__}.{name}"
    spec = spec_from_file_location(name, file, submodule_search_locations=inside)
    if spec is None or spec.loader is None:
        raise ModuleNotFoundError(f"{file} is not a module; install hivemind again")
    module = sys.modules[name] = module_from_spec(spec)  # a package's modules look it up by name
    spec.loader.exec_module(module)
    return module


HIVEMIND = _folder()
"""The folder in which hivemind is installed."""
p2pd_pb2 = _loaded("hivemind_p2pd_pb2", HIVEMIND / "proto" / "p2pd_pb2.py")
"""The messages on p2pd's control socket."""
_multiaddr = _loaded("hivemind_multiaddr", HIVEMIND / "utils" / "multiaddr" / "__init__.py")
Multiaddr = _multiaddr.Multiaddr
"""An address in libp2p's notation; it converts between text and p2pd's encoding."""
