"""Scripts and styles come with their type and a date, over ASGI as the product serves, and without a warning."""

import gzip

from asgiref.sync import async_to_sync
from django.test import AsyncClient

STYLES = "/static/css/base.css"


def test_a_file_comes_whole_with_its_type(database: object) -> None:
    reply = async_to_sync(AsyncClient().get)(STYLES)
    assert reply.status_code == 200
    assert reply["Content-Type"].startswith("text/css")
    assert int(reply["Content-Length"]) == len(reply.content) > 100
    assert not reply.streaming


def test_what_the_browser_has_is_not_sent_again(database: object) -> None:
    client = AsyncClient()
    seen = async_to_sync(client.get)(STYLES)["Last-Modified"]
    again = async_to_sync(client.get)(STYLES, headers={"if-modified-since": seen})
    assert (again.status_code, again.content) == (304, b"")


def test_a_part_is_sent_where_a_part_is_asked_for(database: object) -> None:
    reply = async_to_sync(AsyncClient().get)(STYLES, headers={"range": "bytes=0-9"})
    assert (reply.status_code, len(reply.content)) == (206, 10)


def test_text_is_compressed_for_who_takes_it_and_comes_out_the_same(database: object) -> None:
    plain = async_to_sync(AsyncClient().get)(STYLES)
    packed = async_to_sync(AsyncClient().get)(STYLES, headers={"accept-encoding": "gzip, br"})
    assert packed["Content-Encoding"] == "gzip"
    assert packed["Vary"] == plain["Vary"] == "Accept-Encoding"
    assert int(packed["Content-Length"]) == len(packed.content) < len(plain.content)
    assert gzip.decompress(packed.content) == plain.content
    font = async_to_sync(AsyncClient().get)("/static/vendor/inter-latin.woff2", headers={"accept-encoding": "gzip"})
    assert "Content-Encoding" not in font
