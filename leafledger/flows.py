"""The flows by a name that no folder of a user's hides: ``leafledger.flows.explain`` is what stands in ``flows/explain.py`` beside this package."""

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

_FOLDER = Path(__file__).resolve().parents[1] / "flows"
_spec = spec_from_file_location(__name__, _FOLDER / "__init__.py", submodule_search_locations=[str(_FOLDER)])
if _spec is None or _spec.loader is None:
    raise ImportError(f"{_FOLDER} cannot be imported, expected the flows of leafledger", name=__name__)
sys.modules[__name__] = module_from_spec(_spec)  # in the place of this module: an import gives what stands here when it has ended
_spec.loader.exec_module(sys.modules[__name__])
