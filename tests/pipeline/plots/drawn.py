"""What stands in an SVG picture: texts, and elements by their class."""

from xml.etree import ElementTree

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg):
    """Texts that are seen, in the order in which they are drawn."""
    return [element.text or "" for element in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def count(svg, tag, *kinds):
    """How many elements have one of these classes."""
    return sum(element.get("class") in kinds for element in ElementTree.fromstring(svg).iter(f"{SVG}{tag}"))


def said(svg):
    """The title and the description, for those who do not see it."""
    root = ElementTree.fromstring(svg)
    return root.findtext(f"{SVG}title"), root.findtext(f"{SVG}desc")
