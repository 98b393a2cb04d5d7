"""JSON Schemas of the two documents, for readers that don't speak Python.

``python -m tokenwatt_site.documents.schema FOLDER`` writes them.
"""

import sys
from pathlib import Path
from typing import Any

from tokenwatt_site.documents import jsonfile
from tokenwatt_site.documents.base import Strict
from tokenwatt_site.documents.run import SCHEMA_VERSION, Run
from tokenwatt_site.documents.spec import Spec

DIALECT = "https://json-schema.org/draft/2020-12/schema"
MODELS: dict[str, type[Strict]] = {"run": Run, "spec": Spec}


def schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of ``run`` or ``spec``."""
    head = {"$schema": DIALECT, "$id": f"urn:tokenwatt-site:{name}:{SCHEMA_VERSION}"}
    return head | MODELS[name].model_json_schema()


def files() -> dict[str, str]:
    """Return the text of every schema file by its name in ``schemas/``."""
    return {f"{name}.schema.json": jsonfile.dumps(schema(name)) for name in MODELS}


if __name__ == "__main__":
    for file, text in files().items():
        Path(sys.argv[1], file).write_text(text, encoding="utf-8")
