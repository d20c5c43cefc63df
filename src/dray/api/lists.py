"""Lists of objects, as list requests answer and as files hold them."""

from __future__ import annotations

from typing import Generic, TypeVar

from dray.api.meta import NIL, ApiStruct, ListMeta, written

ItemT = TypeVar("ItemT")


class ObjectList(ApiStruct, Generic[ItemT], frozen=True):
    """Items of one kind; they carry neither `apiVersion` nor `kind` themselves."""

    api_version: str = ""
    kind: str = ""
    metadata: ListMeta = written(ListMeta())
    items: tuple[ItemT, ...] = written(NIL)
