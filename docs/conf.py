"""Settings of Sphinx, a directive for what is generated, as in ``{generated} parameters banzhaf``, and formulas in MathML, which need no network."""

import sys
from datetime import UTC, datetime
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

sys.path.insert(0, str(Path(__file__).parents[1]))

from docs import generated
from docs.live import PUBLISHED

project, author = "Leafledger", "the Leafledger authors"
copyright = f"{datetime.now(UTC).year}, {author}"  # noqa: A001 - Sphinx's name
release = version = version_of("leafledger")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "numpydoc", "cyclopts.ext.sphinx"]
myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_theme = "furo"
html_title = f"Leafledger {release}"
html_extra_path = [str(PUBLISHED)] if PUBLISHED.exists() else []  # live/: a report, and the overview of nights
html_math_renderer = "mathml"
autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings say more than annotations
numpydoc_show_class_members = False


class Generated(SphinxDirective):
    """A part of the page made by ``docs/generated.py``: its name, and what it is made of."""

    required_arguments, optional_arguments, final_argument_whitespace, has_content = 1, 1, True, False

    def run(self) -> list[nodes.Node]:
        """Read what was made as Markdown."""
        self.env.note_dependency(generated.__file__)
        rest = self.arguments[1].split() if len(self.arguments) > 1 else []
        return self.parse_text_to_nodes(generated.PARTS[self.arguments[0]](*rest))


def _write_formula(writer: Any, node: nodes.math | nodes.math_block) -> None:
    writer.body.append(tex2mathml(node.astext(), as_block=isinstance(node, nodes.math_block)))
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive, and how formulas are written."""
    app.add_directive("generated", Generated)
    app.add_html_math_renderer("mathml", (_write_formula, None), (_write_formula, None))
    return {"parallel_read_safe": True}
