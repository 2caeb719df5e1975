"""Blobs in a bucket of any service that speaks S3, by django-storages."""

import io
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from itertools import chain
from typing import Any

import httpx2
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, EndpointConnectionError, HTTPClientError
from django.core.files.base import ContentFile
from storages.backends.s3 import S3Storage

from governance.transport import CallEnded, Limits, Reach, Transport
from vault.providers.ports import BlobEntry, BlobStoreUnavailable

LIMITS = Limits(seconds=60.0, connect_seconds=10.0, read_seconds=10.0, answer_bytes=64 * 1024 * 1024)
TRIES = 3
PART_BYTES = 16 * 1024 * 1024  # of a large object in one call
MOST_PARTS = 9_000  # S3 takes 10,000 of an object
DELETED_AT_ONCE = 1_000  # the most that S3 takes in a call


class S3BlobStore:
    """bucket, prefix: where; endpoint: empty for Amazon's own; key_id, secret: empty where the machine has its own."""

    is_remote = True

    def __init__(self, *, bucket: str, prefix: str, endpoint: str, region: str, key_id: str, secret: str) -> None:
        self._name = f"s3://{bucket}/{prefix}".rstrip("/")
        self._prefix = f"{prefix}/" if prefix else ""
        self._storage = _Storage(
            bucket_name=bucket,
            location=prefix,
            endpoint_url=endpoint or None,
            region_name=region or None,
            access_key=key_id or None,
            secret_key=secret or None,
            default_acl=None,
            file_overwrite=True,
            client_config=Config(retries={"max_attempts": TRIES}),
        )

    @property
    def name(self) -> str:
        return self._name

    def write(self, name: str, content: bytes) -> None:
        try:
            self._storage.save(name, ContentFile(content))
        except (BotoCoreError, ClientError, OSError) as error:
            raise _unavailable_error(error) from error

    def read(self, name: str) -> bytes | None:
        try:
            with self._storage.open(name) as file:
                content: bytes = file.read()
        except FileNotFoundError:
            return None
        except (BotoCoreError, ClientError, OSError) as error:
            raise _unavailable_error(error) from error
        return content

    def delete(self, names: Iterable[str]) -> None:
        wanted = [{"Key": f"{self._prefix}{name}"} for name in names]
        try:
            for start in range(0, len(wanted), DELETED_AT_ONCE):
                part = wanted[start : start + DELETED_AT_ONCE]
                answer = self._bucket.delete_objects(Delete={"Objects": part, "Quiet": True})
                if failed := answer.get("Errors"):
                    raise BlobStoreUnavailable(f"The archive did not delete {len(failed)} objects.")
        except (BotoCoreError, ClientError, OSError) as error:
            raise _unavailable_error(error) from error

    def entries(self, prefix: str = "") -> Iterator[BlobEntry]:
        try:
            for found in self._bucket.objects.filter(Prefix=f"{self._prefix}{prefix}"):
                yield BlobEntry(found.key.removeprefix(self._prefix), found.last_modified)
        except (BotoCoreError, ClientError, OSError) as error:
            raise _unavailable_error(error) from error

    def write_parts(self, name: str, content: Iterable[bytes], *, size: int) -> None:
        """Write an object as it comes, all of it or nothing. size: about how many bytes it will have."""
        parts = _regroup(content, max(PART_BYTES, size // MOST_PARTS + 1))
        first, second = next(parts), next(parts, None)
        if second is None:
            self.write(name, first)
            return
        key = {"Bucket": self._bucket.name, "Key": f"{self._prefix}{name}"}
        try:
            upload = {**key, "UploadId": self._client.create_multipart_upload(**key)["UploadId"]}
            try:
                sent = []
                for number, part in enumerate(chain([first, second], parts), start=1):
                    answer = self._client.upload_part(**upload, PartNumber=number, Body=part)
                    sent.append({"PartNumber": number, "ETag": answer["ETag"]})
                self._client.complete_multipart_upload(**upload, MultipartUpload={"Parts": sent})
            except BaseException:
                with suppress(BotoCoreError, ClientError):  # the first failure is the one to tell
                    self._client.abort_multipart_upload(**upload)
                raise
        except (BotoCoreError, ClientError, OSError) as error:
            raise _unavailable_error(error) from error

    def read_parts(self, name: str) -> Iterator[bytes | None]:
        """Yield an object in parts, however large it is; None where there is none."""
        key = {"Bucket": self._bucket.name, "Key": f"{self._prefix}{name}"}
        try:
            head = self._client.head_object(**key)
            for start in range(0, head["ContentLength"], PART_BYTES):
                wanted = f"bytes={start}-{min(start + PART_BYTES, head['ContentLength']) - 1}"
                answer = self._client.get_object(**key, Range=wanted, IfMatch=head["ETag"])
                yield answer["Body"].read()
        except ClientError as error:
            if error.response["Error"]["Code"] not in {"404", "NoSuchKey"}:
                raise _unavailable_error(error) from error
            yield None
        except (BotoCoreError, OSError) as error:
            raise _unavailable_error(error) from error

    def has(self, name: str) -> bool:
        try:
            return bool(self._storage.exists(name))
        except (BotoCoreError, ClientError, OSError) as error:
            raise _unavailable_error(error) from error

    def folders(self) -> list[str]:
        """Return the first parts of the names that have several."""
        pages = self._client.get_paginator("list_objects_v2")
        try:
            found = [
                place["Prefix"].removeprefix(self._prefix).rstrip("/")
                for page in pages.paginate(Bucket=self._bucket.name, Prefix=self._prefix, Delimiter="/")
                for place in page.get("CommonPrefixes", ())
            ]
        except (BotoCoreError, ClientError, OSError) as error:
            raise _unavailable_error(error) from error
        return found

    def abort_uploads(self, *, ending: str, before: datetime) -> None:
        """End unfinished uploads that began before a time and whose names end like this: their parts cost money."""
        pages = self._client.get_paginator("list_multipart_uploads")
        try:
            for page in pages.paginate(Bucket=self._bucket.name, Prefix=self._prefix):
                for upload in page.get("Uploads", ()):
                    if upload["Key"].endswith(ending) and upload["Initiated"] < before:
                        self._client.abort_multipart_upload(
                            Bucket=self._bucket.name, Key=upload["Key"], UploadId=upload["UploadId"]
                        )
        except (BotoCoreError, ClientError, OSError) as error:
            raise _unavailable_error(error) from error

    @property
    def _client(self) -> Any:
        return self._storage.connection.meta.client

    @property
    def _bucket(self) -> Any:
        return self._storage.bucket


class _Storage(S3Storage):  # type: ignore[misc]
    """Sends each signed request by the product's transport instead of botocore's own session."""

    def __init__(self, **options: Any) -> None:
        self._transport = Transport(LIMITS, Reach.ANY)
        super().__init__(**options)

    @property
    def connection(self) -> Any:
        """The connection of this thread."""
        found = super().connection
        found.meta.client.meta.events.register("before-send.s3", self._send, unique_id="transport")
        return found

    def _send(self, request: AWSPreparedRequest, **_: Any) -> AWSResponse:
        """Raises HTTPClientError where a bound ended the call; EndpointConnectionError, which botocore tries again."""
        body = request.body.read() if hasattr(request.body, "read") else request.body
        headers = {name: _decode_header(value) for name, value in request.headers.items()}
        try:
            sent = httpx2.Request(request.method, request.url, headers=headers, content=body)
            answer = self._transport.handle_request(sent)
            try:
                content = answer.read()
            finally:
                answer.close()
        except CallEnded as error:
            raise HTTPClientError(error=error) from error
        except httpx2.RequestError as error:
            raise EndpointConnectionError(endpoint_url=request.url, error=error) from error
        return AWSResponse(request.url, answer.status_code, dict(answer.headers), _Content(content))


def _regroup(content: Iterable[bytes], size: int) -> Iterator[bytes]:
    """Yield content in pieces of `size` bytes, the last one smaller; one at least."""
    held = bytearray()
    is_first = True
    for chunk in content:
        held += chunk
        while len(held) > size:
            yield bytes(held[:size])
            del held[:size]
            is_first = False
    if held or is_first:
        yield bytes(held)


class _Content(io.BytesIO):
    """A body that was read, as botocore reads one."""

    def stream(self) -> Iterator[bytes]:
        yield self.read()


def _decode_header(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _unavailable_error(error: Exception) -> BlobStoreUnavailable:
    """The error for a failed call, with the service's code alone: its message may hold an address or a key."""
    code = error.response.get("Error", {}).get("Code", "") if isinstance(error, ClientError) else ""
    return BlobStoreUnavailable(f"The archive gave no usable answer: {code or type(error).__name__}.")
