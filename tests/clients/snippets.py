#!/usr/bin/env python3
"""Writes the code of a document into files of their own: snippets.py DOCUMENT LANGUAGE DIR.

The document is a README, whose code blocks have the language, or the OpenAPI document with a sample of every operation.
"""

import json
import re
import sys
from pathlib import Path

LABELS = {"python": "Python", "ts": "TypeScript", "sh": "curl"}

document, language, folder = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
text = document.read_text()
if document.suffix == ".json":
    # A stack publishes no files.
    paths = {path: item for path, item in json.loads(text)["paths"].items() if path != "/v1/files"}
    operations = [one for item in paths.values() for one in item.values()]
    samples = [sample for operation in operations for sample in operation["x-codeSamples"]]
    blocks = [sample["source"] for sample in samples if sample["label"] == LABELS[language]]
else:
    blocks = re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.M | re.S)
assert blocks, f"{document} has no {language}"
folder.mkdir(parents=True, exist_ok=True)
for number, block in enumerate(blocks, start=1):
    ending = "py" if language == "python" else language
    (folder / f"snippet_{document.stem}_{number}.{ending}").write_text(block)
