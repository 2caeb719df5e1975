"""The product's own scripts, styles and pictures."""

import gzip
from functools import lru_cache

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile

TEXT = ("text/", "image/svg+xml", "application/javascript", "application/json")
WORTH_IT = 1024  # bytes; less is sent as it is


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]
    """WhiteNoise with unstreamed responses: its streams are synchronous, which Django warns of under ASGI.

    The files are small; the largest is read in less than a block's time. Text is compressed once per process.
    """

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        found = static_file.get_response(request.method, request.META)
        content = b""
        if found.file is not None:
            with found.file as file:
                content = file.read()
        response = HttpResponse(content, status=int(found.status), headers=dict(found.headers), content_type=None)
        return _compress(response, request) if response.get("Content-Type", "").startswith(TEXT) else response


def _compress(response: HttpResponse, request: HttpRequest) -> HttpResponse:
    """Return the response compressed if the browser accepts gzip; a range of a file stays as it is."""
    patch_vary_headers(response, ["Accept-Encoding"])
    takes = "gzip" in request.headers.get("Accept-Encoding", "")
    if takes and response.status_code == 200 and len(response.content) > WORTH_IT:
        response.content = _gzip(bytes(response.content))
        response["Content-Encoding"] = "gzip"
        response["Content-Length"] = str(len(response.content))
        if "ETag" in response:
            response["ETag"] = f"W/{response['ETag'].removeprefix('W/')}"
    return response


@lru_cache(maxsize=64)
def _gzip(content: bytes) -> bytes:
    return gzip.compress(content, mtime=0)
