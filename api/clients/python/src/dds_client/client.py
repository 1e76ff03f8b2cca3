"""The two clients: one that waits and one that is awaited. What they decide is decided by the same code."""

from __future__ import annotations

import asyncio
import os
import platform
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Self, TypeVar

import httpx
import msgspec

from .changes import PATH, SILENCE, Cause, Change, Event, Kind, Notice, Progress
from .errors import BrokenAnswer, DdsError, MissingKey, Refused, Unreachable, VersionNotServed, refusal
from .files import Files
from .kept import Kept
from .newest import Newest
from .operations import AsyncOperations, Operations
from .request import encode
from .retry import Retry
from .version import VERSION

Answer = TypeVar("Answer")
LOCAL = "http://127.0.0.1:8080"
"""Where `cargo stack` serves."""


class _Core:
    """What both clients know: whom to ask, how, and what an answer means."""

    def __init__(
        self,
        key: str | None = None,
        *,
        url: str | None = None,
        retry: Retry = Retry(),
        timeout: float = 30.0,
        kept_answers: int = 64,
    ) -> None:
        """A client of the service at `url` (default: `DDS_API_URL`) with `key` (default: `DDS_API_KEY`).

        `timeout` is in seconds, for connecting and for each read. The newest `kept_answers` answers of at most 1 MiB are
        kept and asked for conditionally. Raises MissingKey without a key.
        """
        key = key or os.environ.get("DDS_API_KEY")
        if not key:
            raise MissingKey("give a key, or set DDS_API_KEY")
        # A base may end in /v1, as the service's published address does; every path begins with it.
        base = (url or os.environ.get("DDS_API_URL") or LOCAL).rstrip("/").removesuffix("/v1")
        self._retry, self._timeout = retry, timeout
        self._of_streams = httpx.Timeout(timeout, read=max(timeout, SILENCE))
        self._kept = Kept(kept_answers)
        self._newest = Newest()
        agent = f"dds-python/{VERSION} (python {platform.python_version()}; httpx {httpx.__version__})"
        self._settings: dict[str, Any] = {
            "base_url": base,
            "timeout": timeout,
            "headers": {"authorization": f"Bearer {key}", "user-agent": agent, "accept": "application/json"},
        }

    def _prepare(self, request: httpx.Request) -> None:
        """Sets what the answers so far determine: the entity tag of a kept answer, and the newest data version."""
        kept = self._kept.find(str(request.url))
        for name, value in (("if-none-match", kept and kept[0]), ("if-min-version", self._newest.version())):
            request.headers.pop(name, None)
            if value:
                request.headers[name] = value

    def _pause(self, attempt: int, outcome: bytes | DdsError) -> float | None:
        """Seconds to wait before the next try; None when this one is the last."""
        if isinstance(outcome, (bytes, BrokenAnswer)):
            return None
        if isinstance(outcome, VersionNotServed):
            # The service lost its newest data, for example in a restore.
            return 0.0 if self._newest.forget() else None
        return self._retry.pause(attempt, None if isinstance(outcome, Unreachable) else outcome)  # type: ignore[arg-type]

    def _outcome(self, url: str, response: httpx.Response, body: bytes) -> bytes | DdsError:
        """The body of a success, or what is wrong."""
        self._newest.see(response.headers.get("etag"))
        if response.status_code == 304 and (kept := self._kept.find(url)):
            return kept[1]
        if response.status_code != 200:
            return refusal(response.status_code, body, response.headers)
        self._kept.keep(url, response.headers.get("etag"), body)
        return body


class Client(_Core, Operations):
    """Asks the service and waits for its answers. Safe to use from several threads."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._http = httpx.Client(**self._settings)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes the connections."""
        self._http.close()

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Any path with any parameters, as JSON with exact decimals: what typed methods leave out, like `fields`."""
        return self._ask(path, query or {}, dict[str, Any])

    def files(self, version: str | None = None) -> Files:
        """Whole tables as files of an object store (Professional): of a data version, by default the newest that is published."""
        return Files(self.get("/v1/files", {"version": version})["data"], timeout=self._timeout)

    def changes(
        self,
        *,
        since: str | datetime | None = None,
        symbols: Sequence[str] | None = None,
        kinds: Sequence[Kind] | None = None,
        follow: bool = True,
    ) -> Iterator[Change]:
        """Changes of served rows as they happen, each once. After a lost connection the stream continues.

        `since` is the `sync_from` of an answer, the `since` of a change, or an instant; without it the stream begins now.
        Without `symbols` it has the whole market (Professional). With `follow=False` it ends after all present changes.
        """
        progress = Progress(since, symbols=symbols, kinds=kinds, follow=follow)
        for change in self._follow(progress):
            assert isinstance(change, Change)
            yield change

    def notices(
        self,
        *,
        events: Sequence[Event] | None = None,
        since: str | datetime | None = None,
        symbols: Sequence[str] | None = None,
        cause: Sequence[Cause] | None = None,
        backfill: bool = False,
        follow: bool = True,
    ) -> Iterator[Notice]:
        """What happens to securities, for example `events=["raised", "cut"]`; by default every event.

        The other parameters are those of `changes`. Without `cause` only what new data cause; with `backfill=True` also
        events that were more than ten sessions old when they became known.
        """
        chosen = {"events": events, "kinds": ["notices"], "cause": cause, "backfill": backfill}
        for notice in self._follow(Progress(since, symbols=symbols, follow=follow, **chosen)):
            assert isinstance(notice, Notice)
            yield notice

    def _follow(self, progress: Progress) -> Iterator[Change | Notice]:
        while True:
            progress.attempt += 1
            outcome: Refused | Unreachable = Unreachable("the stream ended")
            try:
                with self._http.stream(
                    "GET", PATH, params=encode(progress.query), headers=progress.headers(), timeout=self._of_streams
                ) as response:
                    if response.status_code == 200:
                        for line in response.iter_lines():
                            if change := progress.read(line):
                                yield change
                    else:
                        outcome = refusal(response.status_code, response.read(), response.headers)
            except httpx.TransportError as error:
                outcome = unreachable(error)
            if progress.is_over:
                return
            pause = self._pause(progress.attempt, outcome)
            if pause is None:
                raise outcome
            time.sleep(pause)

    def _ask(
        self, path: str, query: Mapping[str, Any], kind: type[Answer], body: Mapping[str, Any] | None = None
    ) -> Answer:
        request = self._http.build_request(**call(path, query, body))
        attempt = 0
        while True:
            attempt += 1
            outcome = self._try(request)
            pause = self._pause(attempt, outcome)
            if pause is None:
                return understood(outcome, kind)
            time.sleep(pause)

    def _try(self, request: httpx.Request) -> bytes | DdsError:
        url = str(request.url)
        try:
            self._prepare(request)
            response = self._http.send(request, stream=True)
        except httpx.TransportError as error:
            return unreachable(error)
        try:
            return self._outcome(url, response, response.read())
        except httpx.HTTPError as error:
            return broken_off(error)
        finally:
            response.close()


class AsyncClient(_Core, AsyncOperations):
    """Asks the service and is awaited."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self._http = httpx.AsyncClient(**self._settings)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        await self._http.aclose()

    async def get(self, path: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Any path with any parameters, as JSON with exact decimals: what typed methods leave out, like `fields`."""
        return await self._ask(path, query or {}, dict[str, Any])

    async def files(self, version: str | None = None) -> Files:
        """Whole tables as files of an object store (Professional): of a data version, by default the newest that is published."""
        return Files((await self.get("/v1/files", {"version": version}))["data"], timeout=self._timeout)

    async def changes(
        self,
        *,
        since: str | datetime | None = None,
        symbols: Sequence[str] | None = None,
        kinds: Sequence[Kind] | None = None,
        follow: bool = True,
    ) -> AsyncIterator[Change]:
        """Changes of served rows as they happen, each once. After a lost connection the stream continues.

        `since` is the `sync_from` of an answer, the `since` of a change, or an instant; without it the stream begins now.
        Without `symbols` it has the whole market (Professional). With `follow=False` it ends after all present changes.
        """
        progress = Progress(since, symbols=symbols, kinds=kinds, follow=follow)
        async for change in self._follow(progress):
            assert isinstance(change, Change)
            yield change

    async def notices(
        self,
        *,
        events: Sequence[Event] | None = None,
        since: str | datetime | None = None,
        symbols: Sequence[str] | None = None,
        cause: Sequence[Cause] | None = None,
        backfill: bool = False,
        follow: bool = True,
    ) -> AsyncIterator[Notice]:
        """What happens to securities, for example `events=["raised", "cut"]`; by default every event.

        The other parameters are those of `changes`. Without `cause` only what new data cause; with `backfill=True` also
        events that were more than ten sessions old when they became known.
        """
        chosen = {"events": events, "kinds": ["notices"], "cause": cause, "backfill": backfill}
        async for notice in self._follow(Progress(since, symbols=symbols, follow=follow, **chosen)):
            assert isinstance(notice, Notice)
            yield notice

    async def _follow(self, progress: Progress) -> AsyncIterator[Change | Notice]:
        while True:
            progress.attempt += 1
            outcome: Refused | Unreachable = Unreachable("the stream ended")
            try:
                async with self._http.stream(
                    "GET", PATH, params=encode(progress.query), headers=progress.headers(), timeout=self._of_streams
                ) as response:
                    if response.status_code == 200:
                        async for line in response.aiter_lines():
                            if change := progress.read(line):
                                yield change
                    else:
                        outcome = refusal(response.status_code, await response.aread(), response.headers)
            except httpx.TransportError as error:
                outcome = unreachable(error)
            if progress.is_over:
                return
            pause = self._pause(progress.attempt, outcome)
            if pause is None:
                raise outcome
            await asyncio.sleep(pause)

    async def _ask(
        self, path: str, query: Mapping[str, Any], kind: type[Answer], body: Mapping[str, Any] | None = None
    ) -> Answer:
        request = self._http.build_request(**call(path, query, body))
        attempt = 0
        while True:
            attempt += 1
            outcome = await self._try(request)
            pause = self._pause(attempt, outcome)
            if pause is None:
                return understood(outcome, kind)
            await asyncio.sleep(pause)

    async def _try(self, request: httpx.Request) -> bytes | DdsError:
        url = str(request.url)
        try:
            self._prepare(request)
            response = await self._http.send(request, stream=True)
        except httpx.TransportError as error:
            return unreachable(error)
        try:
            return self._outcome(url, response, await response.aread())
        except httpx.HTTPError as error:
            return broken_off(error)
        finally:
            await response.aclose()


def call(path: str, query: Mapping[str, Any], body: Mapping[str, Any] | None) -> dict[str, Any]:
    """A GET, or a POST with a body as JSON. Decimals of the body are text."""
    whole = {"method": "GET", "url": path, "params": encode(query)}
    if body is None:
        return whole
    headers = {"content-type": "application/json"}
    return whole | {"method": "POST", "headers": headers, "content": msgspec.json.encode(body)}


def understood(outcome: bytes | DdsError, kind: type[Answer]) -> Answer:
    """The answer as a `kind`; raises what is wrong with it."""
    if isinstance(outcome, DdsError):
        raise outcome
    try:
        return msgspec.json.Decoder(kind, float_hook=Decimal).decode(outcome)
    except msgspec.MsgspecError as error:
        raise BrokenAnswer(f"the answer is not what the document promises: {error}") from error


def unreachable(error: httpx.TransportError) -> Unreachable:
    """No answer began."""
    outcome = Unreachable(f"no answer: {error or type(error).__name__}")
    outcome.__cause__ = error
    return outcome


def broken_off(error: httpx.HTTPError) -> BrokenAnswer:
    """An answer began and did not end. It is not asked for again unasked: the caller may have used part of a walk."""
    outcome = BrokenAnswer(f"the answer broke off: {error or type(error).__name__}")
    outcome.__cause__ = error
    return outcome
