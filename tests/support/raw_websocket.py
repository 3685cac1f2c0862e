"""A WebSocket client just large enough to say to the controller what no agent would (RFC 6455)."""
import base64
import json
import os
import socket
import struct


class RawWebSocket:
    def __init__(self, port, target, token, timeout=20):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.buffer = b""
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
                            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
                            f"Authorization: Bearer {token}\r\n\r\n".encode())
        while b"\r\n\r\n" not in self.buffer:
            self._more()
        head, self.buffer = self.buffer.split(b"\r\n\r\n", 1)
        self.status = int(head.split()[1])

    def _more(self):
        got = self.socket.recv(65536)
        if not got:
            raise EOFError("the connection is closed")
        self.buffer += got

    def _take(self, size):
        while len(self.buffer) < size:
            self._more()
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def send(self, text, opcode=1):
        data, mask = text.encode() if isinstance(text, str) else text, os.urandom(4)
        length = bytes([0x80 | len(data)]) if len(data) < 126 else struct.pack(">BH", 0xFE, len(data)) \
            if len(data) < 65536 else struct.pack(">BQ", 0xFF, len(data))
        self.socket.sendall(bytes([0x80 | opcode]) + length + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def receive(self):
        """(opcode, payload) of the next frame that is no ping."""
        while True:
            first, length = self._take(2)
            if length == 126:
                length, = struct.unpack(">H", self._take(2))
            elif length == 127:
                length, = struct.unpack(">Q", self._take(8))
            payload = self._take(length)
            if first & 15 != 9:
                return first & 15, payload

    def until_closed(self):
        """Every message until the peer's close frame, and that frame's code and reason; EOFError where there is none."""
        messages = []
        while True:
            opcode, payload = self.receive()
            if opcode == 8:
                self.send(payload, 8)
                self.socket.close()
                return messages, struct.unpack(">H", payload[:2])[0], payload[2:].decode()
            if opcode == 1:
                messages.append(json.loads(payload))
