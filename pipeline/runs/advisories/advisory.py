"""The record of an advisory, and which of them may concern a finished run, by what its manifest and plan say."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from ..records.manifest import Manifest
from ..records.plan import Plan

PAGE = "docs/advisories.md"
_RELEASE = re.compile(r"(\d+)\.(\d+)\.(\d+)")


@dataclass(frozen=True, slots=True)
class PublishedRun:
    """What a finished run says of itself."""

    manifest: Manifest
    plan: Plan


@dataclass(frozen=True, slots=True)
class Advisory:
    """Numbers that were published and are wrong, told once they are mended.

    Attributes
    ----------
    name : str
        The year, and a number, as in "2026-01".
    since, mended : str
        The first version that had it, and the first that does not.
    wrong : str
        What was wrong.
    models : str
        Of which models, data or options, in words: a manifest does not tell all of it.
    library : str
        Of the model; empty for any.
    methods : tuple of str
        Empty for any.
    may_be : callable
        Whether a run may be concerned, by what else its manifest and plan say.
    """

    name: str
    since: str
    mended: str
    wrong: str
    models: str
    library: str = ""
    methods: tuple[str, ...] = ()
    may_be: Callable[[PublishedRun], bool] = lambda run: True

    def is_about(self, manifest: Manifest) -> bool:
        """Tell whether it is of a run's version, library and method; what else has to hold says ``may_be``."""
        asked = ((self.library,), manifest.library), (self.methods, manifest.method)
        return all(not any(some) or one in some for some, one in asked) and _release(self.since) <= _release(manifest.version) < _release(self.mended)

    def __str__(self) -> str:
        which = f"{self.library}: {self.models}" if self.library else self.models
        cure = f"make it again with --if-changed replace, see {PAGE}"
        return f"advisory {self.name} may concern it ({which}): {self.wrong}; mended in {self.mended}: {cure}"


def _release(version: str) -> tuple[int, ...]:
    """Parse a version, of which what follows the three numbers does not count; nothing is older than what is no version."""
    found = _RELEASE.match(version)
    return () if found is None else tuple(map(int, found.groups()))
