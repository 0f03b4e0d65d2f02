"""Numbered messages between two processes, which an interrupt can neither tear nor lose for good.

An exception of a signal handler can come between any two instructions of Python. So a message is
one record in a pipe, which the system writes whole or not at all; what does not fit into the record
lies in a file, and is there before the record is. A sender that does not know how far it came sends
the same message again, and a receiver knows by the number what it has had already.
"""

import os
import select
import struct
import tempfile
from contextlib import suppress

RECORD = select.PIPE_BUF
"""Bytes that a pipe takes in one piece."""
FORM = struct.Struct(f"=qq{RECORD - 16}s")  # number, length, the first bytes (zeros behind them)
INLINE = RECORD - 16


class Channel:
    """One end of a connection.

    Args:
        files: descriptors, which the channel owns from now on: of the pipe that it reads, of the
            pipe that it writes, and of the files with the long messages of either.
    """

    def __init__(self, files: tuple[int, int, int, int]) -> None:
        self.files: tuple[int, ...] = files
        self._reads, self._writes, self._theirs, self._ours = files

    def send(self, number: int, message: bytes) -> None:
        """Send a message, perhaps once more.

        Raises:
            BrokenPipeError: the other end is closed.
            OSError: there is no room for a long message.
        """
        if len(message) > INLINE:
            _write(self._ours, message)
        os.write(self._writes, FORM.pack(number, len(message), message))

    def receive(self, number: int = 0) -> tuple[int, bytes]:
        """The next message and its number; no bytes where that is below the one asked for.

        Raises:
            EOFError: the other end is closed.
        """
        record = os.read(self._reads, RECORD)
        if not record:
            raise EOFError
        found, length, first = FORM.unpack(record)
        if found < number:  # sent again, and its file may be that of a later one
            return found, b""
        return found, first[:length] if length <= INLINE else _read(self._theirs, length)

    def fileno(self) -> int:
        """The descriptor to wait at for messages."""
        return self._reads

    def __del__(self) -> None:
        self.close()

    def close(self) -> None:
        """Close this end; once more does nothing."""
        files, self.files = self.files, ()
        for file in files:
            with suppress(OSError):
                os.close(file)


def connect() -> tuple[Channel, Channel]:
    """Both ends of a new connection."""
    (first_reads, second_writes), (second_reads, first_writes) = os.pipe(), os.pipe()
    ours, theirs = _file(), _file()
    first = Channel((first_reads, first_writes, theirs, ours))
    return first, Channel((second_reads, second_writes, os.dup(ours), os.dup(theirs)))


def _file() -> int:
    """A file without a name, in memory where the system can have it there."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("dialgym", os.MFD_CLOEXEC)
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _write(file: int, message: bytes) -> None:
    rest, start = memoryview(message), 0
    while start < len(rest):
        start += os.pwrite(file, rest[start:], start)


def _read(file: int, length: int) -> bytes:
    parts, start = [], 0
    while start < length:
        parts.append(os.pread(file, length - start, start))
        start += len(parts[-1])
    return b"".join(parts)
