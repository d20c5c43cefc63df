from __future__ import annotations

from typing import Any

import pytest

from dray.cli.jsonpath import BadTemplate, Template

OBJ: dict[str, Any] = {
    "kind": "List",
    "items": [
        {
            "metadata": {"name": "a", "labels": {"app.kubernetes.io/name": "x"}},
            "status": {"conditions": [{"type": "Ready", "status": "True"}, {"type": "Other", "status": "False"}]},
            "n": 3,
        },
        {"metadata": {"name": "b"}, "status": {"conditions": [{"type": "Ready", "status": "False"}]}, "n": 1},
    ],
    "flag": True,
    "nothing": None,
}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{.kind}", "List"),
        (".kind", "List"),
        ("kind is {.kind}!", "kind is List!"),
        ("{.items[*].metadata.name}", "a b"),
        ("{.items[0].metadata.name}", "a"),
        ("{.items[-1].metadata.name}", "b"),
        ("{.items[0:1].metadata.name}", "a"),
        ("{.items[7].metadata.name}", ""),
        ("{.items[*]['n']}", "3 1"),
        ("{..name}", "a b"),
        (r"{.items[0].metadata.labels.app\.kubernetes\.io/name}", "x"),
        ("{.items[0].metadata.labels['app.kubernetes.io/name']}", "x"),
        ('{range .items[*]}{.metadata.name}{"\\t"}{.n}{"\\n"}{end}', "a\t3\nb\t1\n"),
        ("{.items[?(@.n>1)].metadata.name}", "a"),
        ("{.items[?(@.metadata.labels)].metadata.name}", "a"),
        ('{.items[0].status.conditions[?(@.type=="Ready")].status}', "True"),
        ('{.items[?(@.metadata.name!="a")].n}', "1"),
        ("{.flag} {.nothing} {.missing}", "true  "),
        ("{.items[1].metadata}", '{"name":"b"}'),
        ('{.kind}{", "}{.items[0].n}', "List, 3"),
        ("{range .items[*]}{range .status.conditions[*]}{.type} {end}{end}", "Ready Other Ready "),
        ("{$.kind}", "List"),
        ("{.items[*].metadata['name']}", "a b"),
    ],
)
def test_templates_print_what_kubectl_prints(template: str, expected: str) -> None:
    assert Template(template).render(OBJ) == expected


@pytest.mark.parametrize(
    "template",
    [
        "{.items[}",
        "{range .items[*]}",
        "{end}",
        '{"open}',
        "{.a[x]}",
        "{.items[?(@.n>)]}",
        "{.items[?(@.n>x)]}",
        "{%}",
        "{.a",
    ],
)
def test_bad_templates_show_where(template: str) -> None:
    with pytest.raises(BadTemplate, match=r"\^"):
        Template(template)
