"""Colours, dashes and markers of the design system, for files that stand alone.

Pages take them from the style sheet's variables; a test holds both to the same values.
"""

LIGHT = {
    "bg": "#fdfdfb",
    "ink": "#17191c",
    "ink2": "#484d54",
    "ink3": "#666b72",
    "hair": "#e3e3de",
    "line": "#878c92",
    "limit": "#b3261e",
    "sim": "#6a3d9a",
    "s1": "#424ac3",
    "s2": "#db6715",
    "s3": "#239f98",
    "s4": "#6b0162",
    "s5": "#534f00",
    "s6": "#087aa3",
    "s7": "#9e70f9",
    "s8": "#b81e61",
    "s0": "#878c92",
}

DASHES = {2: "7 4", 3: "2 4", 4: "9 3 2 3", 5: "4 2", 6: "12 4", 7: "7 4", 8: "2 4", 0: "4 4"}

MARKERS = {
    "m0": "M-3 0a3 3 0 1 0 6 0a3 3 0 1 0-6 0z",
    "m1": "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0z",
    "m2": "M-4-4H4V4H-4z",
    "m3": "M0-5.2 5 3.8H-5z",
    "m4": "M0-5.6 5.2 0 0 5.6-5.2 0z",
    "m5": "M0 5.2 5-3.8H-5z",
    "m6": "M-1.7-5h3.4v3.3h3.3v3.4h-3.3V5h-3.4V1.7H-5v-3.4h3.3z",
}


def marker_of(slot: int) -> str:
    """Return the id of a slot's marker; after six they begin again, hollow."""
    return f"m{(slot - 1) % 6 + 1}" if slot else "m0"
