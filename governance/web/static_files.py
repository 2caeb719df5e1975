"""The product's own scripts, styles and pictures."""

from django.http import HttpRequest, HttpResponse
from whitenoise.middleware import WhiteNoiseMiddleware
from whitenoise.responders import StaticFile


class StaticFilesMiddleware(WhiteNoiseMiddleware):  # type: ignore[misc]
    """WhiteNoise, answering in one piece: its streams are synchronous, which Django warns of under ASGI.

    The files are small; the largest is read in less than a block's time.
    """

    @staticmethod
    def serve(static_file: StaticFile, request: HttpRequest) -> HttpResponse:
        found = static_file.get_response(request.method, request.META)
        content = b""
        if found.file is not None:
            with found.file as file:
                content = file.read()
        return HttpResponse(content, status=int(found.status), headers=dict(found.headers), content_type=None)
