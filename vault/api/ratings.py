"""REST views of publications/{id}/ratings/."""

from typing import TYPE_CHECKING, Any
from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import ONCE, PAGE, describe
from governance.api.pages import CursorPages
from governance.api.representations import time_json
from governance.api.views import ApiView, refuse_unknown_parameters
from governance.idempotency.services import Reply
from governance.vocabulary import Permission
from vault.api.inputs import read
from vault.api.store_schema import RatingInput, RatingListSchema, RatingSchema
from vault.store.ratings import rating_remove, rating_write, ratings_list

if TYPE_CHECKING:
    from vault.models import PackRating


class PublicationRatingsView(ApiView):
    @describe("publications_ratings", RatingListSchema, parameters=PAGE, may=[404])
    def get(self, request: Request, publication_id: UUID) -> Response:
        """List ratings of a publication, newest first."""
        pages = CursorPages(request)
        rows = ratings_list(actor=self.actor(), publication_id=publication_id, pages=pages)
        return pages.envelope([rating_json(row) for row in rows])

    @describe("publications_rate", RatingSchema, status=201, request=RatingInput, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, publication_id: UUID) -> Response:
        """Rate a pack that your organisation subscribes or has subscribed to; replaces your own rating."""
        actor = self.actor()
        authorize(actor, Permission.STORE_MANAGE)
        refuse_unknown_parameters(request)
        body = read(RatingInput, request)

        def call() -> Reply:
            row = rating_write(
                actor=actor, publication_id=publication_id, stars=body["stars"], text=body.get("text", "")
            )
            return Reply(201, rating_json(row))

        return self.post_once(call)

    @describe("publications_unrate", None, status=204, may=[404, 409])
    def delete(self, request: Request, publication_id: UUID) -> Response:
        """Remove your own rating."""
        actor = self.actor()
        authorize(actor, Permission.STORE_MANAGE)
        refuse_unknown_parameters(request)
        rating_remove(actor=actor, publication_id=publication_id)
        return Response(status=204)


def rating_json(row: "PackRating") -> dict[str, Any]:
    return {
        "organisation": row.organisation,
        "stars": row.stars,
        "text": row.text,
        "version": row.number,
        "rated_at": time_json(row.rated_at),
    }
