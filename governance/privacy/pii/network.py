"""Network addresses: IPv4, IPv6 and MAC. Addresses of no machine (loopback, masks, any) are left out."""

import ipaddress
import re
from collections.abc import Iterator

from governance.privacy.pii.context import Topic, topic_before
from governance.privacy.pii.patterns import find_accepted
from governance.privacy.pii.pii_ranges import Span
from governance.vocabulary import PiiKind

IPV4 = re.compile(
    r"[0-9](?<![A-Za-z0-9.].)[0-9]{0,2}(?:\.[0-9]{1,3}){3}(?![A-Za-z0-9]|\.[0-9]|-[A-Za-z0-9])", re.DOTALL
)
IPV6 = re.compile(
    r"[0-9A-Fa-f:](?<![A-Za-z0-9:.].)[0-9A-Fa-f:]{5,38}(?:(?<=:)[0-9]{1,3}(?:\.[0-9]{1,3}){3})?(?![A-Za-z0-9:])",
    re.DOTALL,
)
MAC = re.compile(
    r"[0-9A-Fa-f](?<![0-9A-Fa-f:-].)[0-9A-Fa-f]([:-])[0-9A-Fa-f]{2}(?:\1[0-9A-Fa-f]{2}){4}(?![0-9A-Fa-f:-])", re.DOTALL
)
LETTER = re.compile("[A-Fa-f]")
LEAST_GROUPS = 3  # of an IPv6 address: `a::b` is a name in a program


def network_addresses(text: str) -> Iterator[Span]:
    if text.count(".") >= 3:
        for found in find_accepted(IPV4, text, _is_ipv4):
            yield Span(PiiKind.NETWORK_ADDRESS, found.start(), found.end(), "ipv4")
    if text.count(":") >= 2:
        for found in find_accepted(IPV6, text, _is_ipv6):
            yield Span(PiiKind.NETWORK_ADDRESS, found.start(), found.end(), "ipv6")
    if text.count(":") >= 5 or text.count("-") >= 5:
        for found in find_accepted(MAC, text, _is_mac):
            yield Span(PiiKind.NETWORK_ADDRESS, found.start(), found.end(), "mac")


def _is_ipv4(found: re.Match[str]) -> bool:
    try:
        address = ipaddress.IPv4Address(found[0])
    except ValueError:
        return False
    if address.is_loopback or address.is_unspecified or found[0].startswith("255."):
        return False
    return topic_before(found.string, found.start()) is not Topic.OTHER


def _is_ipv6(found: re.Match[str]) -> bool:
    if found[0].count(":") < 2:
        return False
    try:
        address = ipaddress.IPv6Address(found[0])
    except ValueError:
        return False
    groups = [group for group in found[0].split(":") if group]
    telling = len(groups) >= LEAST_GROUPS or any(len(group) == 4 for group in groups)
    return telling and not address.is_loopback


def _is_mac(found: re.Match[str]) -> bool:
    """Return whether six pairs of digits are a MAC address: without letters and colons they may be a date and time."""
    return found[1] == ":" or bool(LETTER.search(found[0]))
