"""The page as one text: its style and scripts inside, and a policy that names their hashes and lets in nothing else.

With data in it the page is whole in itself; without, it asks the server that it came from.
"""

import base64
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import orjson

WEB = Path(__file__).with_name("web")
SCRIPTS = ("numbers", "times", "series", "drawing", "chart", "many", "places", "facts", "running", "metric", "start")


def page(data: dict[str, Any] | None = None) -> str:
    """The page's text; with data it needs no server."""
    text = _template("'none'" if data else "'self'")
    body = "null" if data is None else orjson.dumps(data).decode().replace("<", "\\u003c")
    return text.replace("@DATA@", body)


@cache
def policy(connect: str = "'self'") -> str:
    """The policy: this style, this script, and data from `connect` alone.

    >>> policy("'none'")[:62]
    "default-src 'none'; connect-src 'none'; img-src data:; style-s"
    """
    return (
        f"default-src 'none'; connect-src {connect}; img-src data:; style-src {_hash(style())}; "
        f"script-src {_hash(script())}; base-uri 'none'; form-action 'none'"
    )


@cache
def script() -> str:
    """All scripts, in the order in which they build on one another."""
    return "".join((WEB / f"{name}.js").read_text("utf-8") for name in SCRIPTS)


@cache
def style() -> str:
    """The style sheet, in full, as it stands in the page and as its hash in the policy covers it."""
    return (WEB / "page.css").read_text("utf-8")


@cache
def _template(connect: str) -> str:
    text = (WEB / "page.html").read_text("utf-8")
    for mark, part in (("@POLICY@", policy(connect)), ("@STYLE@", style()), ("@SCRIPT@", script())):
        text = text.replace(mark, part)
    return text


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
