"""publications/{id}/ratings/ of the REST API."""

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from governance.access.decisions.services import authorize
from governance.api.descriptions import ONCE, PAGE, describe, page_of
from governance.api.pages import show_page
from governance.api.views import ApiView
from governance.vocabulary import Permission
from vault.api.store_schema import RatingInput, RatingSchema
from vault.store.ratings import rating_remove, rating_write, ratings_list


class PublicationRatingsView(ApiView):
    @describe("publications_ratings", page_of(RatingSchema), parameters=PAGE, may=[404])
    def get(self, request: Request, publication_id: UUID) -> object:
        """List the ratings of a publication, newest first."""
        return show_page(self, ratings_list, publication_id=publication_id)

    @describe("publications_rate", RatingSchema, status=201, request=RatingInput, parameters=[ONCE], may=[404, 409])
    def post(self, request: Request, publication_id: UUID) -> Response:
        """Rate a pack to which your organisation is or was subscribed. Replaces your earlier rating."""
        actor = self.actor()
        authorize(actor, Permission.STORE_MANAGE)
        body = self.read_body()
        return self.post_once(
            lambda: rating_write(
                actor=actor, publication_id=publication_id, stars=body["stars"], text=body.get("text", "")
            )
        )

    @describe("publications_unrate", None, status=204, may=[404, 409])
    def delete(self, request: Request, publication_id: UUID) -> None:
        """Remove your own rating."""
        actor = self.actor()
        authorize(actor, Permission.STORE_MANAGE)
        self.read_body()
        rating_remove(actor=actor, publication_id=publication_id)
