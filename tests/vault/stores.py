"""Blob stores for tests: the folder of a test's data directory, and buckets of an S3 server on this machine."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import boto3
from moto.server import ThreadedMotoServer

from memos_web.config import BlobStoreChoice

FOLDER = BlobStoreChoice(bucket="", prefix="", endpoint="", region="", key_id="", secret="")
KEY_ID, SECRET, REGION = "tests", "of the tests", "us-east-1"


@contextmanager
def s3_server() -> Iterator[str]:
    """The address of a server that speaks S3, on a free port."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        yield f"http://{host}:{port}"
    finally:
        server.stop()


def new_bucket(endpoint: str) -> BlobStoreChoice:
    """An empty bucket of that server, with a prefix that others could share it beside."""
    name = f"memos-{uuid4().hex}"
    client = boto3.client(
        "s3", endpoint_url=endpoint, region_name=REGION, aws_access_key_id=KEY_ID, aws_secret_access_key=SECRET
    )
    client.create_bucket(Bucket=name)
    client.close()
    return BlobStoreChoice(
        bucket=name, prefix="archive/one", endpoint=endpoint, region=REGION, key_id=KEY_ID, secret=SECRET
    )
