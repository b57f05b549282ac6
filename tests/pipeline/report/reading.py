"""Reading of a report's page."""

import re
from html import unescape


def read_section(run, name):
    """The text of a section of the page, without its marks."""
    page = (run / "report" / "index.html").read_text()
    (found,) = re.findall(rf'<section id="{name}".*?</section>', page, re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", found)).split())
