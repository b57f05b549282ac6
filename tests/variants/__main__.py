"""``python -m tests.variants [FILE]``: compare every variant with its library, print, write ``docs/variants.json``; fail where one is too far off."""

import json
import sys
import tempfile
import time
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path

from docs.generated import VARIANTS as FILE
from tests.variants.gradient_boosting import of_lightgbm, of_xgboost
from tests.variants.others import of_catboost, of_sklearn
from tests.variants.variant import BOUNDS, Measured, measure

VARIANTS = (*of_xgboost(), *of_lightgbm(), *of_catboost(), *of_sklearn())


def within(found: Measured) -> bool:
    """Whether a variant is as near to its library as is claimed."""
    bound = BOUNDS[found.library]
    return found.margin <= bound and (found.contributions is None or found.contributions <= bound)


def main(path: Path) -> None:
    """Measure all, and write what was found."""
    started, all_found = time.perf_counter(), []
    for variant in VARIANTS:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(variant, Path(folder))
        all_found.append(found)
        apart = "none of its own" if found.contributions is None else f"{found.contributions:.1e}"
        print(f"{'holds' if within(found) else 'FAILS'}  {found.library}, {found.name}: margins {found.margin:.1e}, attributions {apart}", flush=True)
    versions = {library: version(library.lower()) for library in BOUNDS}
    said = {"versions": versions, "bounds": BOUNDS, "variants": [asdict(found) for found in all_found]}
    path.write_text(json.dumps(said, indent=1, ensure_ascii=False) + "\n")
    print(f"{path} written; {len(all_found)} variants in {time.perf_counter() - started:.0f} s")
    if not all(map(within, all_found)):
        raise SystemExit("some variants are further from their library than is claimed")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else FILE)
