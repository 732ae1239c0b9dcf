"""Expressions: Python's own grammar is the oracle of their structure: where both have an operator, it is the same."""

import ast
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.mechanisms.expressions import MOST_DEPTH, MOST_WORDS, Call, Expression, Name, Number, Text, parse
from tests.support.cover import in_a_loop
from tests.support.effort import examples

WORDS = st.sampled_from(
    ["and", "or", "not", "<", "<=", ">", ">=", "==", "!=", "+", "-", "*", "/", "^", "(", ")", ",", "a", "b.c", "f(",
     "1", "0.5", "1e3", "'x'", '"it\'s"', "`d e`", "`not`", "01", "#", "a b", "=", "'"]
)  # fmt: skip
SIGNS = {
    ast.And: "and", ast.Or: "or", ast.Not: "not", ast.USub: "-", ast.Add: "+", ast.Sub: "-", ast.Mult: "*",
    ast.Div: "/", ast.Pow: "^", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


def of_python(node: ast.expr) -> Expression:
    """The same tree, as Python reads the text."""
    match node:
        case ast.BoolOp(op, values):
            tree = of_python(values[0])
            for value in values[1:]:
                tree = Call(SIGNS[type(op)], (tree, of_python(value)))
            return tree
        case ast.UnaryOp(op, operand):
            return Call(SIGNS[type(op)], (of_python(operand),))
        case ast.BinOp(left, op, right):
            return Call(SIGNS[type(op)], (of_python(left), of_python(right)))
        case ast.Compare(left, [op], [right]):
            return Call(SIGNS[type(op)], (of_python(left), of_python(right)))
        case ast.Constant(value):
            return Text(value) if isinstance(value, str) else Number(str(value))
        case ast.Name(name):
            return Name(name)
    raise AssertionError(ast.dump(node))


LEAVES = st.sampled_from(["a", "b", "1", "0.5", "'x'"])
TEXTS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds("{} {} {}".format, inner, st.sampled_from(["and", "or", "+", "-", "*", "/", "^"]), inner),
        st.builds("({} {} {})".format, inner, st.sampled_from(["<", "==", ">=", "and", "^"]), inner),
        st.builds("{} {}".format, st.just("-"), inner),
        st.builds("({} {})".format, st.just("not"), inner),
    ),
    max_leaves=10,
)


@examples(100)
@given(TEXTS)
def test_operators_bind_as_in_python(text: str) -> None:
    assert parse(text) == of_python(ast.parse(text.replace("^", "**"), mode="eval").body)


@examples(100)
@given(TEXTS)
def test_the_text_of_a_tree_says_the_same_tree(text: str) -> None:
    tree = parse(text)
    assert parse(str(tree)) == tree


@examples(200)
@given(st.lists(WORDS, max_size=12).map(" ".join) | st.text(max_size=30))
def test_any_text_is_a_tree_or_refused(text: str) -> None:
    try:
        tree = parse(text)
    except ValueError:
        return
    assert parse(str(tree)) == tree


@in_a_loop
@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("", "character 1: a value is missing before the end"),
        ("   ", "character 1: a value is missing before the end"),
        ("amount >", "character 9: a value is missing before the end"),
        ("amount = 1", "character 8: nothing can begin with '=' here; compare with =="),
        ("amount ; 1", "character 8: nothing can begin with ';' here"),
        ("amount 1", "character 8: an operator is missing before '1'"),
        ("(a > 1", "character 7: an operator or ) is missing before the end"),
        ("f(a, ", "character 5: a value is missing before the end"),
        ("and > 1", "character 1: a value is missing before 'and'"),
        ("1 < a < 3", "compares in a chain; write a < b and b < c"),
        ("a > " + "1" * 1000, "has 1004 characters; an expression has at most 1000"),
        ("(" * MOST_DEPTH + "a" + ")" * MOST_DEPTH, "is nested too deeply: an expression has at most 20 levels"),
        ("a+" * (MOST_WORDS // 2) + "a", "has 201 words and signs; an expression has at most 200"),
    ],
)
def test_what_is_no_expression_is_refused(text: str, refusal: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(refusal)}$"):
        parse(text)


def test_functions_and_names_in_backticks() -> None:
    assert parse("f(`total-amount`, -2)") == Call("f", (Name("total-amount"), Call("-", (Number("2"),))))
    assert str(parse("f( `total-amount`,g(x)) ")) == "f(`total-amount`, g(x))"
