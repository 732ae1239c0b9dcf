"""Records that are plain, nearly plain or broken: what the kernel may take, and what it must leave to the twin."""

from hypothesis import strategies as st

PLAIN = '{"u": "%s", "x": %s, "t": %d, "g": "%s"}'
USERS = ["a", "bob", "10", "x" * 256, "ü", "名"]
GROUPS = ["a", "b", "c", "true"]
# What may stand for a field: most of it is unusual, some is wrong.
FRAGMENTS = [
    '"a"', '"bob"', '""', '"\\u0061"', '"\\ud800"', '"a\\n"', '"ü"', '"\t"', f'"{"y" * 257}"', "7", "-7", "-0", "0",
    "12.0", "1e1", "1E-2", "1e400", "-1e400", "123456789012345678", "1234567890123456789", "18446744073709551616",
    "1" * 400, "0.1", "0.30000000000000004", "9007199254740993", "179769313486231570000000000000000000000", "NaN",
    "Infinity", "01", "1.", ".5", "+1", "true", "false", "null", "[]", "{}", "[1, [2]]", '{"u": 1}',
    "[" * 30 + "]" * 30, "[" * 300 + "]" * 300, '"1970-01-01"', '"1970-01-01T00:02:03Z"', '"1970-01-01 00:02:03.5"',
    '"1970-01-01T00:02:03+01:00"', '"1970-01-01T24:00:00"', '"1970-02-30"', '"19700101"', '"123456789"', "123.5",
    "99999999999", "100000000000", "20240101120000", "-5", "1e2",
    '"\\udc00"', '"\\ud83d\\ude00"', '"\\ud83d"', '"\\u0000"', '"a\x00"', '"\ud800"', '"\ufeff"', '"\ufffe"',
    '"e\u0301"', "-1e-400", "1e-400", "1e999999999999", "0." + "0" * 400 + "1", "-" + "9" * 400, "1" * 5000,
]  # fmt: skip
SHAPES = [
    PLAIN,
    ' {"t": %(t)s , "x":%(x)s,"u" :%(u)s,\n"g":%(g)s}\r',
    '{"u": %(u)s, "x": %(x)s, "t": %(t)s}',
    '{"u": 1, "u": %(u)s, "x": "no", "x": %(x)s, "t": %(t)s, "g": %(g)s}',
    '{"more": {"u": [1, {"x": "\\"}"}]}, "u": %(u)s, "x": %(x)s, "t": %(t)s, "g": %(g)s, "z": 1e400}',
    '{"\\u0075": 1, "u": %(u)s, "x": %(x)s, "t": %(t)s, "g": %(g)s}',
    '{"u": %(u)s, "x": %(x)s, "t": %(t)s, "g": %(g)s',
    '[{"u": %(u)s, "x": %(x)s, "t": %(t)s, "g": %(g)s}]',
    '\ufeff{"u": %(u)s, "x": %(x)s, "t": %(t)s, "g": %(g)s}',
]
# Records whose names, or the places of names, are those of another one. The fields that count are u, t and v.x.
ALIKE = [
    b'{"u":"a","t":130,"v":{"x":0.25}}',
    b'{"u": "a", "t" :130,"v":{ "x" : 0.5}}',
    b'{"u":"a","t":130,"x":1,"v":{"y":{"x":0},"x":0.25}}',
    b'{"v":{"x":0.25},"u":"a","t":130}',
    b'{"v":{},"x":1,"u":"a","t":130}',
    b'{"v":[{"x":1}],"x":1,"u":"a","t":130}',
    b'{"u":"bob","u":"a","t":130,"v":{"x":1,"x":0},"v":{"x":0.25}}',
    b'{"u":"a","t":130,"v":{"x":1},"v":{}}',
    b'{"\\u0075":"bob","u":"a","t":130,"v":{"x":0.25}}',
    b'{"u\\"":"bob","u":"a","t":130,"v":{"x":0.25}}',
    b'{"uu":"bob","u":"a","t":130,"vx":1,"v":{"xx":1,"x":0.25}}',
    b'{"%s":1,"u":"a","t":130,"v":{"%s":1,"x":0.25}}' % (b"n" * 64, b"n" * 65),
    b'{"%s":1,"u":"a","t":130,"v":{"%s":1,"x":0.25}}' % (b"n" * 65, b"n" * 64),
    b'{%s"u":"a","t":130,"v":{"x":0.25}}' % b"".join(b'"%d":0,' % n for n in range(63)),
    b'{"u":"bob","t":131,"v":{"x":0.25',
    b'{"u":"bob","t":131,"v":{"x":0.25]}',
]  # fmt: skip
# Records that somebody might send to break a reader. Those of bytes that are no UTF-8 are no texts, so they stand here.
HOSTILE = [
    b"", b" ", b"\x00", b"\x00" * 300, b"\xef\xbb\xbf", b"\xff\xfe{\x00}\x00", b"null", b'""', b"{}", b"{}{}", b'{"u"}',
    b'{"u":}',
    b"[" * 100_000, b"{" * 100_000, b'{"u":' * 50_000, b'{"u": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    b'{"z": ' * 900 + b"1" + b"}" * 900, b'{"u": "a", "x": ' + b"9" * 200_000 + b', "t": 130}',
    b'{"u": "a", "x": 1e' + b"9" * 10_000 + b', "t": 130}',
    # Many digits make up for an exponent of which a parser may read the first digits only.
    b'{"u": "a", "x": 0.' + b"0" * 66_000 + b'1e655360, "t": 130, "g": "a"}',
    b'{"u": "a", "x": 1, "t": ' + b"0" * 1_000 + b"130}",
    b'{' + b'"u": "b", ' * 5_000 + b'"u": "a", "x": 1, "t": 130, "g": "a"}',
    b'{' + b", ".join(b'"f%d": %d' % (n, n) for n in range(5_000)) + b', "u": "a", "x": 1, "t": 130, "g": "a"}',
    *(b'{"u": "%s", "x": 1, "t": 130, "g": "a"}' % name for name in (
        b"\xc0\x80", b"\xc1\xa1", b"\xe0\x80\xaf", b"\xf0\x80\x80\xaf",  # longer than need be
        b"\xed\xa0\x80", b"\xed\xa0\xbd\xed\xb8\x80", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b"\x80",
        b"\xe2\x82", b"\xf0\x9f\x98\x80", b"\xef\xbf\xbf", b"\x7f", b"\xc2\x85", b"\xe2\x80\xa8",
    )),
    *(b'{"%s": "a", "u": "b", "x": 1, "t": 130, "g": "a"}' % name for name in (b"\xc0\xb5", b"\xff", b"u\x00", b"")),
]  # fmt: skip

fragments = st.sampled_from(FRAGMENTS)
plain = st.builds(
    lambda user, value, time, group: (PLAIN % (user, value, time, group)).encode(),
    st.sampled_from(USERS), st.sampled_from(["0", "0.25", "1", "17", "-3", "0.1"]), st.integers(100, 160),
    st.sampled_from(GROUPS),
)  # fmt: skip


@st.composite
def unusual(draw: st.DrawFn) -> bytes:
    """A record in which one or two fields are unusual, or its shape is."""
    fields = {"u": f'"{draw(st.sampled_from(USERS))}"', "x": "0.5", "t": str(draw(st.integers(100, 160))), "g": '"a"'}
    for name in draw(st.lists(st.sampled_from("uxtg"), max_size=2)):
        fields[name] = draw(fragments)
    shape = draw(st.sampled_from(SHAPES[1:]))
    return (shape % fields).encode("utf-8", "surrogatepass")


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """A plain record with some of its bytes changed, cut out or doubled."""
    raw = bytearray(draw(plain))
    for _ in range(draw(st.sampled_from([1, 1, 2]))):
        at = draw(st.integers(0, max(0, len(raw) - 1)))
        match draw(st.integers(0, 5)):
            case 0:
                raw[at : at + 1] = bytes([draw(st.sampled_from(b'"\\{}[],:0129.eE+-x \x00\x80\xc3\xff'))])
            case 1:
                del raw[at : at + draw(st.integers(1, 4))]
            case 2:
                raw[at:at] = raw[at : at + draw(st.integers(1, 4))]
            case 3:
                raw[at:at] = bytes([draw(st.sampled_from(b" \n0159aZ"))])
            case _:
                inside = [place for place, byte in enumerate(raw) if chr(byte).isalnum()] or [0]
                raw[draw(st.sampled_from(inside))] = draw(st.sampled_from(b"0159aZ"))
    return bytes(raw)


records = st.one_of(plain, plain, unusual(), mutated(), st.sampled_from(HOSTILE))
