"""Faults of a store: some are tried again, the rest are reported without secrets."""

from __future__ import annotations

import errno
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from evalcore.core.records.errors import EvalError, MissingExtra
from evalcore.shell.files.address import hide_addresses

Result = TypeVar("Result")

WAITS = (0.2, 0.6, 1.8, 5.4)
"""Seconds before each further attempt."""

PASSING = frozenset(
    {"ConnectionError", "HTTPClientError", "ClientConnectionError", "ClientPayloadError", "TimeoutError"}
)
"""Classes of Python, botocore and aiohttp for a connection that broke, was refused, or did not come in time."""
DENIED = frozenset({"NoCredentialsError", "PartialCredentialsError", "DefaultCredentialsError", "RefreshError"})
LONGEST = 200


def ask_store(shown: object, action: Callable[[], Result], secrets: tuple[str, ...] = ()) -> Result:
    """Do something in a store, again if that may help; every error names the address as ``shown``.

    That nothing is there is a ``FileNotFoundError``, as for local files; all else is an ``EvalError``.
    """
    waits = iter(WAITS)
    while True:
        try:
            return action()
        except EvalError:
            raise
        except Exception as wrong:
            wait = next(waits, None) if _is_passing(wrong) else None
            if wait is None:
                raise _translate(shown, wrong, secrets) from None  # the error itself may have the whole address
        time.sleep(wait)


def _list_causes(wrong: BaseException) -> Iterator[BaseException]:
    at: BaseException | None = wrong
    while at is not None:
        yield at
        at = at.__cause__


def _find_status(wrong: BaseException) -> int:
    """The HTTP status of an answer, in the words of botocore, aiohttp or gcsfs; 0 without one."""
    for one in _list_causes(wrong):
        response = getattr(one, "response", None)
        told = response.get("ResponseMetadata", {}).get("HTTPStatusCode") if isinstance(response, dict) else None
        status = told or getattr(one, "status", None) or getattr(one, "code", None)
        if isinstance(status, int):
            return status
    return 0


def _is_passing(wrong: BaseException) -> bool:
    """Whether the same may work in a moment."""
    if (status := _find_status(wrong)) in (408, 429) or status >= 500:
        return True
    return any(base.__name__ in PASSING for one in _list_causes(wrong) for base in type(one).__mro__)


def _translate(shown: object, wrong: Exception, secrets: tuple[str, ...]) -> Exception:
    status, names = _find_status(wrong), {type(one).__name__ for one in _list_causes(wrong)}
    why = _describe(wrong, secrets)
    if isinstance(wrong, ImportError):
        extras = 's3:// and https:// come with pip install "evalcore[remote]", gs:// with "evalcore[gcs]"'
        return MissingExtra(f"{shown}: {why}; {extras}")
    if isinstance(wrong, PermissionError) or status in (401, 403) or names & DENIED:
        return EvalError(f"{shown}: the store denies access ({why}); check the credentials it is given")
    if _is_passing(wrong):
        times = len(WAITS) + 1
        return EvalError(f"{shown}: the store cannot be reached, tried {times} times ({why}); try again later")
    if isinstance(wrong, FileNotFoundError):
        return FileNotFoundError(errno.ENOENT, "no such file, folder or bucket", str(shown))
    return EvalError(f"{shown}: {why}")


def _describe(wrong: Exception, secrets: tuple[str, ...]) -> str:
    """The first cause in its own words, without what is secret."""
    first = list(_list_causes(wrong))[-1]
    text = hide_addresses(" ".join(str(first).split())) or type(first).__name__
    for secret in secrets:
        text = text.replace(secret, "[secret]")
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
