"""One pass over a page's text: numbers keep their units when a line breaks."""

import re

from tokenwatt_site import units

_TAG = re.compile(r"(<[^>]*>)")
_NAME = re.compile(r"</?([a-zA-Z0-9]+)")
_AS_WRITTEN = frozenset({"pre", "code", "title", "script", "style", "textarea"})


def tidy_html(html: str) -> str:
    """Tidy the text between tags, outside of code, titles and scripts.

    Attributes are left alone. The pages' own escaping leaves no ``>`` inside a tag.
    """
    parts = _TAG.split(html)
    kept = ""
    for i, part in enumerate(parts):
        if i % 2 == 0:
            if part and not kept:
                parts[i] = units.tidy(part)
            continue
        match = _NAME.match(part)
        name = match[1] if match else ""
        if kept:
            kept = "" if part.startswith("</") and name == kept else kept
        elif name in _AS_WRITTEN and not part.startswith("</") and not part.endswith("/>"):
            kept = name
    return "".join(parts)
