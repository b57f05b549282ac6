"""A picture's colours as plain numbers: programs that draw SVG know no variables of style sheets, and pages that hold it have their own."""

import re

_ROOT = re.compile(r":root \{(.*?)\}", re.DOTALL)
_VARIABLE = re.compile(r"--([\w-]+):\s*([^;}]+?)\s*(?=[;}]|$)")
_DARK = re.compile(r"@media [^{]*dark\) \{\n(.*?)\n\}\n", re.DOTALL)
_LEVEL = re.compile(r"\.(d\d) \{ --a: (\d+)% \}")
_LEVELS = re.compile(r"path\[class\^=d\] \{.*\}")
_STYLE = re.compile(r"(<style>)(.*?)(</style>)", re.DOTALL)


def _resolve(rules: str, colours: dict[str, str]) -> str:
    """Write a rule's colours in the place of their names."""
    levels = _LEVEL.findall(rules)
    shades = " ".join(f"path.{kind} {{ fill: {colours['bar']}; fill-opacity: {int(share) / 100:g} }}" for kind, share in levels)
    rules = _LEVELS.sub(shades, _LEVEL.sub("", rules))
    return re.sub(r"var\(--([\w-]+)\)", lambda found: colours[found[1]], rules).strip()


def write_plain(picture: str, dark: bool = True) -> str:
    """Write a picture's style without variables."""
    sheet = _STYLE.search(picture)
    if sheet is None:
        return picture
    css = sheet[2]
    of_dark = _DARK.search(css)
    light = dict(_VARIABLE.findall("".join(_ROOT.findall(_DARK.sub("", css)))))
    rules = _ROOT.sub("", _DARK.sub("", css))
    plain = _resolve(rules, light)
    if dark and of_dark is not None:
        night = light | dict(_VARIABLE.findall("".join(_ROOT.findall(of_dark[1]))))
        plain += f"\n@media screen and (prefers-color-scheme: dark) {{\n{_resolve(rules, night)}\n}}"
    scheme = "light dark" if dark else "light"
    return _STYLE.sub(lambda found: f"{found[1]}svg {{ color-scheme: {scheme} }}\n{plain}\n{found[3]}", picture, count=1)
