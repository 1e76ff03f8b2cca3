#!/usr/bin/env python3
"""Stands between a client and the service and fails on purpose.

    relay.py URL FAULT…

One fault a call, in order; calls after the last one pass. `pass` hands the answer on, `cut` hands on its first half and
closes, `drop` closes without an answer, `busy` answers 503 with Retry-After, `lost` answers 412 as a service that lost its
newest data. Prints its own URL, then one line a call: `first`, or `again` where the call was conditional, the request line, and
If-Min-Version.
"""

import socket
import sys
import urllib.parse

BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
BUSY_BODY = b'{"error":"The service is busy","code":"SERVICE_UNAVAILABLE"}'
LOST = b"HTTP/1.1 412 Precondition Failed\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s"
LOST_BODY = b'{"error":"The service has no such data","code":"VERSION_NOT_SERVED"}'


def main() -> None:
    target, faults = urllib.parse.urlsplit(sys.argv[1]), sys.argv[2:]
    listener = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
    while True:
        client, _ = listener.accept()
        with client:
            head = read_head(client)
            if not head:
                continue
            conditional = b"\r\nif-none-match:" in head.lower()
            lines = head.decode().split("\r\n")
            least = [line.split(":", 1)[1].strip() for line in lines if line.lower().startswith("if-min-version:")]
            print("again" if conditional else "first", lines[0], *least, flush=True)
            serve(client, head, target, faults.pop(0) if faults else "pass")


def serve(client: socket.socket, head: bytes, target: urllib.parse.SplitResult, fault: str) -> None:
    if fault == "drop":
        return
    if fault == "busy":
        client.sendall(BUSY % (len(BUSY_BODY), BUSY_BODY))
        return
    if fault == "lost":
        client.sendall(LOST % (len(LOST_BODY), LOST_BODY))
        return
    answer = ask(head, target)
    start = answer.index(b"\r\n\r\n") + 4
    client.sendall(answer[: start + (len(answer) - start) // 2] if fault == "cut" else answer)


def ask(head: bytes, target: urllib.parse.SplitResult) -> bytes:
    """The service's answer, byte for byte, on a connection of its own."""
    lines = [line for line in head.split(b"\r\n") if line and not line.lower().startswith(b"connection:")]
    with socket.create_connection((target.hostname, target.port)) as service:
        service.sendall(b"\r\n".join(lines) + b"\r\nConnection: close\r\n\r\n")
        parts = []
        while part := service.recv(65536):
            parts.append(part)
    return b"".join(parts)


def read_head(client: socket.socket) -> bytes:
    head = b""
    while b"\r\n\r\n" not in head:
        part = client.recv(65536)
        if not part:
            return b""
        head += part
    return head


if __name__ == "__main__":
    main()
