#!/usr/bin/env python3
"""Writes the code blocks of a README into files of their own: snippets.py README.md LANGUAGE DIR."""

import re
import sys
from pathlib import Path

readme, language, folder = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
blocks = re.findall(rf"^```{language}\n(.*?)^```", readme.read_text(), flags=re.M | re.S)
assert blocks, f"{readme} has no {language}"
folder.mkdir(parents=True, exist_ok=True)
for number, block in enumerate(blocks, start=1):
    (folder / f"snippet_{number}.{'py' if language == 'python' else language}").write_text(block)
