"""Kubernetes' libraries. Those of the authorizer are declared, but no value of its types exists in DRA."""

from __future__ import annotations

from typing import Final

_SUMMABLE: Final = ("int", "uint", "double", "duration")
_COMPARABLE: Final = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")


def _for_each(types: tuple[str, ...], line: str) -> str:
    return "\n".join(line.format(type=type_) for type_ in types)


LISTS: Final = f"""
{_for_each(_COMPARABLE, "isSorted list_{type}_is_sorted_bool list({type}).() -> bool")}
{_for_each(_SUMMABLE, "sum list_{type}_sum_{type} list({type}).() -> {type}")}
{_for_each(_COMPARABLE, "max list_{type}_max_{type} list({type}).() -> {type}")}
{_for_each(_COMPARABLE, "min list_{type}_min_{type} list({type}).() -> {type}")}
indexOf list_a_index_of_int list(A).(A) -> int
lastIndexOf list_a_last_index_of_int list(A).(A) -> int
"""

INCLUDES: Final = """
includes list_includes_dyn_dyn dyn.(dyn) -> bool
"""

REGEX: Final = """
find string_find_string string.(string) -> string
findAll string_find_all_string string.(string) -> list(string)
findAll string_find_all_string_int string.(string, int) -> list(string)
"""

QUANTITY: Final = """
add quantity_add Quantity.(Quantity) -> Quantity
add quantity_add_int Quantity.(int) -> Quantity
asApproximateFloat quantity_get_float Quantity.() -> double
asInteger quantity_get_int Quantity.() -> int
compareTo quantity_compare_to Quantity.(Quantity) -> int
isGreaterThan quantity_is_greater_than Quantity.(Quantity) -> bool
isInteger quantity_is_integer Quantity.() -> bool
isLessThan quantity_is_less_than Quantity.(Quantity) -> bool
isQuantity is_quantity_string (string) -> bool
quantity string_to_quantity (string) -> Quantity
sign quantity_sign (Quantity) -> int
sub quantity_sub Quantity.(Quantity) -> Quantity
sub quantity_sub_int Quantity.(int) -> Quantity
"""

SEMVER: Final = """
compareTo semver_compare_to Semver.(Semver) -> int
isGreaterThan semver_is_greater_than Semver.(Semver) -> bool
isLessThan semver_is_less_than Semver.(Semver) -> bool
isSemver is_semver_string (string) -> bool
isSemver is_semver_string_bool (string, bool) -> bool
major semver_major Semver.() -> int
minor semver_minor Semver.() -> int
patch semver_patch Semver.() -> int
semver string_to_semver (string) -> Semver
semver string_bool_to_semver (string, bool) -> Semver
"""

NET: Final = """
family ip_family IP.() -> int
ip string_to_ip (string) -> IP
ip.isCanonical ip_is_canonical (string) -> bool
isGlobalUnicast ip_is_global_unicast IP.() -> bool
isIP is_ip (string) -> bool
isLinkLocalMulticast ip_is_link_local_multicast IP.() -> bool
isLinkLocalUnicast ip_is_link_local_unicast IP.() -> bool
isLoopback ip_is_loopback IP.() -> bool
isUnspecified ip_is_unspecified IP.() -> bool
string ip_to_string (IP) -> string
cidr string_to_cidr (string) -> CIDR
containsCIDR cidr_contains_cidr_string CIDR.(string) -> bool
containsCIDR cidr_contains_cidr CIDR.(CIDR) -> bool
containsIP cidr_contains_ip_string CIDR.(string) -> bool
containsIP cidr_contains_ip_ip CIDR.(IP) -> bool
ip cidr_ip CIDR.() -> IP
isCIDR is_cidr (string) -> bool
masked cidr_masked CIDR.() -> CIDR
prefixLength cidr_prefix_length CIDR.() -> int
string cidr_to_string (CIDR) -> string
"""

URLS: Final = """
getEscapedPath url_get_escaped_path URL.() -> string
getHost url_get_host URL.() -> string
getHostname url_get_hostname URL.() -> string
getPort url_get_port URL.() -> string
getQuery url_get_query URL.() -> map(string, list(string))
getScheme url_get_scheme URL.() -> string
isURL is_url_string (string) -> bool
url string_to_url (string) -> URL
"""

FORMATS: Final = (
    "byte",
    "date",
    "datetime",
    "dns1035Label",
    "dns1035LabelPrefix",
    "dns1123Label",
    "dns1123LabelPrefix",
    "dns1123Subdomain",
    "dns1123SubdomainPrefix",
    "labelValue",
    "qualifiedName",
    "uri",
    "uuid",
)
"""Names of the formats that `format.<name>()` gives."""

FORMAT: Final = f"""
{_for_each(FORMATS, "format.{type} format.{type} () -> NamedFormat")}
format.named format-named (string) -> optional(NamedFormat)
validate format-validate NamedFormat.(string) -> optional(list(string))
"""

AUTHORIZATION: Final = """
allowed decision_allowed Decision.() -> bool
check pathcheck_check PathCheck.(string) -> Decision
check resourcecheck_check ResourceCheck.(string) -> Decision
error decision_error Decision.() -> string
errored decision_errored Decision.() -> bool
fieldSelector authorizer_fieldselector ResourceCheck.(string) -> ResourceCheck
group authorizer_group Authorizer.(string) -> GroupCheck
labelSelector authorizer_labelselector ResourceCheck.(string) -> ResourceCheck
name resourcecheck_name ResourceCheck.(string) -> ResourceCheck
namespace resourcecheck_namespace ResourceCheck.(string) -> ResourceCheck
path authorizer_path Authorizer.(string) -> PathCheck
reason decision_reason Decision.() -> string
resource groupcheck_resource GroupCheck.(string) -> ResourceCheck
serviceAccount authorizer_serviceaccount Authorizer.(string, string) -> Authorizer
subresource resourcecheck_subresource ResourceCheck.(string) -> ResourceCheck
"""

KUBERNETES_TABLES: Final = (LISTS, REGEX, QUANTITY, SEMVER, NET, URLS, FORMAT, AUTHORIZATION)
"""All but `includes`, which a feature may switch off."""
