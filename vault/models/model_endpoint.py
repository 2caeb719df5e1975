from django.db import models

from governance.models.base import TenantModel


class ModelEndpoint(TenantModel):
    """A tenant's own language model behind an OpenAI-compatible API. position: its place in the order.

    prompt_price, completion_price: per million tokens, in `currency`; cached_price: of tokens that the server took from
    its cache, None for prompt_price. sealed_key: the API key, None without one.
    """

    model = models.CharField(max_length=100)
    address = models.CharField(max_length=500)
    sealed_key = models.BinaryField(null=True)
    position = models.PositiveSmallIntegerField()
    timeout_seconds = models.PositiveSmallIntegerField()
    retries = models.PositiveSmallIntegerField()
    prompt_price = models.DecimalField(max_digits=10, decimal_places=4, default=0)
    completion_price = models.DecimalField(max_digits=10, decimal_places=4, default=0)
    cached_price = models.DecimalField(max_digits=10, decimal_places=4, null=True)
    currency = models.CharField(max_length=3, default="USD")

    class Meta:
        indexes = [models.Index(fields=["tenant", "position"], name="model_endpoint_in_order")]
