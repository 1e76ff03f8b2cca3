"""Files of a published version: whole tables, fetched from the object store or read from a folder. `read` needs the `files` extra."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx

from .errors import BrokenAnswer, Unreachable

if TYPE_CHECKING:
    import pyarrow  # type: ignore[import-untyped]


class Files:
    """The tables of a data version, each in some Parquet files."""

    def __init__(self, data: Mapping[str, Any], folder: Path | None = None, timeout: float = 30.0) -> None:
        self.data = data
        """What `GET /v1/files` answers: tables, columns, rows, digests and the method version."""
        self.data_version: str = data["data_version"]
        self._folder, self._timeout = folder, timeout

    @classmethod
    def open(cls, folder: str | Path) -> Files:
        """The newest version in a folder of `projector publish --to file:FOLDER`."""
        folder = Path(folder)
        name = json.loads((folder / "latest.json").read_text())["data_version"]
        return cls(json.loads((folder / "versions" / name / "manifest.json").read_text()), folder)

    @property
    def tables(self) -> list[str]:
        """Names of the tables."""
        return [table["name"] for table in self.data["tables"]]

    def addresses(self, table: str) -> list[str]:
        """Addresses of a table's files, for `read_parquet` of DuckDB or `scan_parquet` of Polars. They are secrets, valid for an
        hour; in a folder, they are paths."""
        return [self._address(file) for file in self._files(table)]

    def read(self, table: str) -> pyarrow.Table:
        """All rows of a table. Decimals are exact."""
        import pyarrow
        import pyarrow.parquet  # type: ignore[import-untyped]

        with httpx.Client(timeout=self._timeout, transport=httpx.HTTPTransport(retries=3)) as http:
            parts = [pyarrow.parquet.read_table(io.BytesIO(self._content(http, file))) for file in self._files(table)]
        return pyarrow.concat_tables(parts)

    def _files(self, table: str) -> list[Mapping[str, Any]]:
        for known in self.data["tables"]:
            if known["name"] == table:
                return list(known["files"])
        raise KeyError(f"no table {table!r}: the version has {', '.join(self.tables)}")

    def _address(self, file: Mapping[str, Any]) -> str:
        return str(self._folder / file["path"]) if self._folder else str(file["url"])

    def _content(self, http: httpx.Client, file: Mapping[str, Any]) -> bytes:
        content: bytes
        if self._folder:
            content = (self._folder / file["path"]).read_bytes()
        else:
            try:
                content = http.get(file["url"]).raise_for_status().content
            except httpx.HTTPStatusError as error:
                raise BrokenAnswer(f"the store answers {error.response.status_code} for {file['path']}") from error
            except httpx.TransportError as error:
                raise Unreachable(f"no answer of the store: {error or type(error).__name__}") from error
        if len(content) != file["bytes"]:
            raise BrokenAnswer(f"{file['path']} has {len(content)} bytes instead of {file['bytes']}")
        return content
