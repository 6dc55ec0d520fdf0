"""Form bodies: small, URL-encoded, nothing else; so no multipart parser is needed."""

from __future__ import annotations

from typing import Annotated, Final
from urllib.parse import parse_qsl

from fastapi import Depends, HTTPException, Request

__all__ = ["Submitted", "read_form"]

MAX_BYTES: Final = 64 * 1024  # the longest form holds a label of 200 characters
MAX_FIELDS: Final = 100  # a page of fifty kinds has a box for each


async def read_form(request: Request) -> dict[str, str]:
    """Return the fields of a submitted form; of a name given twice the last one counts.

    Raises:
        HTTPException: 415 for another content type, 413 for a body that is too large, 400 for one
            that cannot be read.
    """
    content_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if content_type != "application/x-www-form-urlencoded":
        raise HTTPException(415, "Send a form: application/x-www-form-urlencoded.")
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > MAX_BYTES:
            raise HTTPException(413, f"A form has at most {MAX_BYTES} bytes.")
    try:
        pairs = parse_qsl(
            body.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS
        )
    except (UnicodeDecodeError, ValueError):
        raise HTTPException(400, "The form cannot be read.") from None
    return dict(pairs)


Submitted = Annotated[dict[str, str], Depends(read_form)]
