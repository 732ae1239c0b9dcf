"""Requests that no client means well by, as bytes, and what a server answers to them."""

import socket

POST = b"POST / HTTP/1.1\r\nHost: localhost\r\n"
COOKIE = b'Cookie: shoal-dashboard="\\377\xed\xa0\x80; =;;\r\n\r\n'
JSON = b"Host: localhost\r\nContent-Type: application/json\r\n"
START = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n"


def login(body: bytes, headers: bytes = JSON) -> bytes:
    """A login with this body."""
    return b"POST /login HTTP/1.1\r\n%sContent-Length: %d\r\n\r\n%s" % (headers, len(body), body)


REQUESTS = {
    "a greeting of TLS": b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" + bytes(160),
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "no version": b"GET /\r\n\r\n",
    "a version to come": b"GET / HTTP/9.9\r\nHost: localhost\r\n\r\n",
    "zeros": bytes(1000),
    "an unknown method": b"BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a method of another path": b"PUT /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "CONNECT": b"CONNECT localhost:1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "OPTIONS *": b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "TRACE": b"TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a long line": b"GET /" + b"a" * 20_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a long header": START + b"X: " + b"a" * 100_000 + b"\r\n\r\n",
    "many headers": START + b"".join(b"X-%d: 1\r\n" % n for n in range(1000)) + b"\r\n",
    "a header without a name": START + b": x\r\n\r\n",
    "a header without a colon": START + b"nonsense\r\n\r\n",
    "a header with a zero": START + b"X: \0\r\n\r\n",
    "bytes in a path": b"GET /\xff\xfe%ff%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "bytes in a query": b"GET /?seen=\xff%ff%&&= HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "half an address": b"GET http://[ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "no address": b"GET //[:x HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a port of letters": b"GET http://localhost:x/ HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "an open bracket as Host": b"GET / HTTP/1.1\r\nHost: [\r\n\r\n",
    "bytes as Host": b"GET / HTTP/1.1\r\nHost: \xff\xfe:80\r\n\r\n",
    "an empty Host": b"GET /metrics HTTP/1.1\r\nHost:\r\n\r\n",
    "two Hosts": b"GET / HTTP/1.1\r\nHost: evil.example\r\nHost: localhost\r\n\r\n",
    "a name of elsewhere": b"GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n",
    "a negative length": POST + b"Content-Length: -1\r\n\r\n",
    "a length of letters": POST + b"Content-Length: x\r\n\r\n",
    "two framings": POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "an unknown expectation": START + b"Expect: nonsense\r\n\r\n",
    "an upgrade": START + b"Connection: upgrade\r\nUpgrade: websocket\r\n\r\n\xff\xff\xff",
    "an unknown upgrade": POST + b"Connection: upgrade\r\nUpgrade: x\r\n\r\n\xff" + bytes(9000),
    "a bad cookie": b"GET /snapshot HTTP/1.1\r\nHost: localhost\r\n" + COOKIE,
    "a lone surrogate": login(b'{"token":"\\ud800"}'),
    "deep lists": login(b"[" * 8000),
    "a token that is a list": login(b'{"token":[]}'),
    "bytes that are no UTF-8": login(b'{"token":"\xff"}'),
    "a body that is too long": login(b"[" * 20_000),
    "no body": login(b""),
    "an unknown charset": login(b"{}", JSON.replace(b"json", b"json; charset=none")),
    "a bad content type": login(b"{}", b'Host: localhost\r\nContent-Type: ";;=/\xff\r\n'),
    "a body that is no gzip": login(b"{}", JSON + b"Content-Encoding: gzip\r\n"),
    "chunks without a length": (
        b"POST /login HTTP/1.1\r\n" + JSON + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n{}\r\n0\r\n\r\n"
    ),
    "a body that ends early": b"POST /login HTTP/1.1\r\n" + JSON + b"Content-Length: 100\r\n\r\n{",
}  # fmt: skip


def exchange(port: int, sent: bytes, *, seconds: float = 30.0) -> bytes:
    """What a server answers to these bytes, up to its first pause; empty if it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), seconds) as connection:
        try:
            connection.sendall(sent)
            return connection.recv(1 << 16)
        except ConnectionError:  # it was closed while bytes were on their way
            return b""


def refusals(port: int) -> dict[str, str]:
    """By request, the status that a server answers, or "closed"."""
    answers = {name: exchange(port, sent) for name, sent in REQUESTS.items()}
    return {name: answer.split(b" ", 2)[1].decode() if answer else "closed" for name, answer in answers.items()}
