"""cel-go's extension libraries: strings (version 2), sets, lists (version 3), two-variable comprehensions."""

from __future__ import annotations

from typing import Final

COMPARABLE: Final = {
    "int": "int",
    "uint": "uint",
    "double": "double",
    "bool": "bool",
    "google.protobuf.Duration": "duration",
    "google.protobuf.Timestamp": "timestamp",
    "string": "string",
    "bytes": "bytes",
}
"""Element types that can be sorted: name in overload ids, and type."""


def _for_comparable(line: str) -> str:
    return "\n".join(line.format(name=name, type=type_) for name, type_ in COMPARABLE.items())


STRINGS: Final = """
charAt string_char_at_int string.(int) -> string
format string_format string.(list(dyn)) -> string
indexOf string_index_of_string string.(string) -> int
indexOf string_index_of_string_int string.(string, int) -> int
join list_join list(string).() -> string
join list_join_string list(string).(string) -> string
lastIndexOf string_last_index_of_string string.(string) -> int
lastIndexOf string_last_index_of_string_int string.(string, int) -> int
lowerAscii string_lower_ascii string.() -> string
replace string_replace_string_string string.(string, string) -> string
replace string_replace_string_string_int string.(string, string, int) -> string
split string_split_string string.(string) -> list(string)
split string_split_string_int string.(string, int) -> list(string)
strings.quote strings_quote (string) -> string
substring string_substring_int string.(int) -> string
substring string_substring_int_int string.(int, int) -> string
trim string_trim string.() -> string
upperAscii string_upper_ascii string.() -> string
"""

SETS: Final = """
sets.contains list_sets_contains_list (list(T), list(T)) -> bool
sets.equivalent list_sets_equivalent_list (list(T), list(T)) -> bool
sets.intersects list_sets_intersects_list (list(T), list(T)) -> bool
"""

LISTS: Final = f"""
distinct list_distinct list(T).() -> list(T)
flatten list_flatten list(list(T)).() -> list(T)
flatten list_flatten_int list(dyn).(int) -> list(dyn)
lists.range lists_range (int) -> list(int)
reverse list_reverse list(T).() -> list(T)
slice list_slice list(T).(int, int) -> list(T)
{_for_comparable("sort list_{name}_sort list({type}).() -> list({type})")}
{_for_comparable("@sortByAssociatedKeys list_{name}_sortByAssociatedKeys list(T).(list({type})) -> list(T)")}
"""

TWO_VARIABLE_COMPREHENSIONS: Final = """
cel.@mapInsert @mapInsert_map_key_value (map(K, V), K, V) -> map(K, V)
cel.@mapInsert @mapInsert_map_map (map(K, V), map(K, V)) -> map(K, V)
"""

EXTENSION_TABLES: Final = (STRINGS, SETS, LISTS, TWO_VARIABLE_COMPREHENSIONS)
