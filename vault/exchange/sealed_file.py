"""A temporary file that only this process and those that it tells the key can read, for what memory should not hold."""

import io
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

CHUNK, TAG = 256 * 1024, 16  # bytes of a chunk in plain text, and what its encryption adds


@dataclass(frozen=True)
class SealedFile:
    """A file in chunks under ChaCha20-Poly1305, each with its number as the nonce. It is written once."""

    path: Path
    key: bytes = field(repr=False)

    def __len__(self) -> int:
        size = self.path.stat().st_size
        return size - -(-size // (CHUNK + TAG)) * TAG

    def write(self, blocks: Iterable[bytes]) -> None:
        cipher, number, waiting = ChaCha20Poly1305(self.key), 0, bytearray()
        with self.path.open("wb") as file:
            for block in blocks:
                waiting += block
                while len(waiting) >= CHUNK:
                    file.write(cipher.encrypt(_nonce(number), bytes(waiting[:CHUNK]), None))
                    del waiting[:CHUNK]
                    number += 1
            if waiting:
                file.write(cipher.encrypt(_nonce(number), bytes(waiting), None))

    def open(self) -> BinaryIO:
        """Return the plain bytes as a stream that can seek."""
        return io.BufferedReader(_ChunkReader(self), CHUNK)


class _ChunkReader(io.RawIOBase):
    def __init__(self, sealed: SealedFile) -> None:
        self._file, self._cipher, self._size = sealed.path.open("rb"), ChaCha20Poly1305(sealed.key), len(sealed)
        self._at, self._number, self._chunk = 0, -1, b""

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence])
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        number, start = divmod(self._at, CHUNK)
        if self._at >= self._size:
            return 0
        if number != self._number:
            self._file.seek(number * (CHUNK + TAG))
            self._chunk = self._cipher.decrypt(_nonce(number), self._file.read(CHUNK + TAG), None)
            self._number = number
        part = self._chunk[start : start + len(buffer)]
        buffer[: len(part)] = part
        self._at += len(part)
        return len(part)

    def close(self) -> None:
        self._file.close()
        super().close()


@contextmanager
def sealed_file() -> Iterator[SealedFile]:
    """A new, empty file, removed at the end."""
    handle, name = tempfile.mkstemp(prefix="memos-import-")
    os.close(handle)
    try:
        yield SealedFile(Path(name), ChaCha20Poly1305.generate_key())
    finally:
        Path(name).unlink(missing_ok=True)


def _nonce(number: int) -> bytes:
    return number.to_bytes(12, "big")
