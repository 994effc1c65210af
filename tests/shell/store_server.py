"""A store to test with: moto's server, a real S3 API on loopback, in a process of its own tests."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

SECRET = "canary-of-the-environment"


@contextmanager
def serve_store() -> Iterator[dict[str, str]]:
    """A running server; the environment in which it is found."""
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    try:
        yield {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
            "AWS_ACCESS_KEY_ID": "tests",
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_DEFAULT_REGION": "us-east-1",
        }
    finally:
        server.stop()


class Bucket:
    """A bucket of a test's own, seen by boto3 and not by what is tested."""

    def __init__(self) -> None:
        self.client: Any = boto3.client("s3")
        self.name = f"tests-{uuid.uuid4().hex[:12]}"
        self.url = f"s3://{self.name}"
        self.client.create_bucket(Bucket=self.name)

    def upload(self, path: Path, key: str) -> str:
        """Put a file, or all files of a folder, under a key; its address."""
        for one in sorted(path.rglob("*")) if path.is_dir() else [path]:
            if one.is_file():
                name = f"{key}/{one.relative_to(path).as_posix()}" if path.is_dir() else key
                self.client.put_object(Bucket=self.name, Key=name, Body=one.read_bytes())
        return f"{self.url}/{key}"

    def read(self, key: str) -> bytes:
        content: bytes = self.client.get_object(Bucket=self.name, Key=key)["Body"].read()
        return content

    def list(self, prefix: str = "") -> list[str]:
        found = self.client.list_objects_v2(Bucket=self.name, Prefix=prefix)
        return sorted(one["Key"] for one in found.get("Contents", ()))
