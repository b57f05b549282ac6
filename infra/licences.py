"""``python -m infra.licences [EXTRA ...]``: licences of all that this package, or some of its extras, brings, as installed packages state them.

By default of the extra ``all``. Ends with 1 where one is unknown, is the GNU GPL or AGPL, or is no free one, but for those that ``EXCEPTIONS`` names.
"""

import re
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, PackageNotFoundError, distribution

from packaging.requirements import Requirement

COPYLEFT = r"(?<!L)(?<!Lesser )A?GPL|(?<!Lesser )GNU (Affero )?General Public"
NOT_FREE = r"proprietary|commercial|-NC\b|SSPL|Server Side Public|BUSL|Business Source|Elastic-|Elastic License|NVIDIA|EULA|all rights reserved"
REFUSED = re.compile(f"{COPYLEFT}|{NOT_FREE}", re.IGNORECASE)
EXCEPTIONS = {  # by package, why it may be there
    "nvidia-nccl-cu12": "NVIDIA's own, may be redistributed; XGBoost's wheel asks for it, and nothing here loads it",
    "skops": "MIT, by its LICENSE file; its metadata name no licence",
    "text-unidecode": "the Artistic License or the GPL, as one chooses: here the first; Prefect's slugs need it",
}


def find(name: str, extras: frozenset[str], seen: set[tuple[str, frozenset[str]]]) -> Iterator[Distribution]:
    """Yield a distribution and all that it brings on this machine, each once or more."""
    if (name, extras) in seen:
        return
    seen.add((name, extras))
    try:
        found = distribution(name)
    except PackageNotFoundError:
        return  # for other systems or Pythons
    yield found
    for line in found.requires or ():
        asked = Requirement(line)
        if asked.marker is None or any(asked.marker.evaluate({"extra": extra}) for extra in extras or {""}):
            yield from find(asked.name, frozenset(asked.extras), seen)


def licence(found: Distribution) -> str:
    """Return a distribution's licence: its expression, its classifiers, or the first line of its text; empty where it does not say."""
    said = found.metadata
    classified = [
        line.rpartition(" :: ")[2] for line in said.get_all("Classifier", []) if line.startswith("License ::") and not line.endswith("OSI Approved")
    ]
    text = (said.get("License") or "").strip().partition("\n")[0]
    return said.get("License-Expression") or ", ".join(classified) or ("" if text.upper() == "UNKNOWN" else text)


def name_of(found: Distribution) -> str:
    """Return a distribution's name as indexes write it."""
    return re.sub(r"[-_.]+", "-", found.metadata["Name"]).lower()


def list_licences(extras: frozenset[str]) -> dict[str, str]:
    """Return licences by package."""
    return dict(sorted({name_of(found): licence(found) for found in find("leafledger", extras, set())}.items()))


def refused(licences: dict[str, str]) -> dict[str, str]:
    """Return those that may not be installed by default."""
    return {name: said for name, said in licences.items() if name not in EXCEPTIONS and (not said or REFUSED.search(said))}


if __name__ == "__main__":
    every = list_licences(frozenset(sys.argv[1:] or ["all"]))
    for package, said in every.items():
        print(f"{package:32} {distribution(package).version:18} {said or 'unknown'}{'; ' * (package in EXCEPTIONS)}{EXCEPTIONS.get(package, '')}")
    if wrong := refused(every):
        raise SystemExit(f"not allowed: {', '.join(wrong)}")
