"""me/ of the REST API: the caller, and the product's limits."""

from django.conf import settings
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from governance.api.descriptions import describe
from governance.api.representations import me_json
from governance.api.schema import Schema, WhoSchema
from governance.api.views import ApiView, refuse_unknown_parameters
from governance.tenants.selectors import me_get


class LimitsSchema(Schema):
    content_characters = serializers.IntegerField()
    metadata_bytes = serializers.IntegerField()
    items_per_call = serializers.IntegerField()
    top_k = serializers.IntegerField()
    page_size = serializers.IntegerField()


class MeSchema(WhoSchema):
    limits = LimitsSchema()


class MeView(ApiView):
    @describe("me", MeSchema)
    def get(self, request: Request) -> Response:
        """Read the caller: principal, tenant, roles, scopes, personas, limits."""
        actor = self.actor()
        refuse_unknown_parameters(request)
        limits = {
            "content_characters": settings.MAX_CONTENT_CHARACTERS,
            "metadata_bytes": settings.MAX_METADATA_BYTES,
            "items_per_call": settings.MAX_ITEMS_PER_CALL,
            "top_k": settings.MAX_TOP_K,
            "page_size": settings.MAX_PAGE_SIZE,
        }
        return Response(me_json(actor, me_get(actor=actor)) | {"limits": limits})
