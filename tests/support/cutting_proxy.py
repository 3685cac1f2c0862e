"""A TCP proxy on loopback that cuts its connections in the middle of whatever is under way, swallows what the server
says, or leads to another server from the next connection on (target_port)."""
import selectors
import socket
import struct
import threading
import time


class CuttingProxy:
    def __init__(self, target_port):
        self.target_port = target_port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.every = None
        self.cut_now = False
        self.swallow = False  # what the server says from now on never arrives
        self.cuts = 0
        self.stopping = False
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopping = True
        self.thread.join(10)

    def cut_every(self, seconds):
        self.every = seconds

    def _run(self):
        selector = selectors.DefaultSelector()
        selector.register(self.listener, selectors.EVENT_READ)
        peers, servers, next_cut = {}, set(), None

        def drop(one):
            other = peers.pop(one, None)
            peers.pop(other, None)
            servers.difference_update((one, other))
            for s in (one, other):
                if s is not None:
                    selector.unregister(s)
                    # A reset, not a polite end: bytes under way are lost.
                    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    s.close()

        while not self.stopping:
            now = time.monotonic()
            if self.every is None:
                next_cut = None
            elif next_cut is None:
                next_cut = now + self.every
            if self.cut_now or (next_cut is not None and now >= next_cut):
                self.cut_now, next_cut = False, None
                for one in list(peers):
                    if one in peers:
                        drop(one)
                        self.cuts += 1
            for key, _ in selector.select(0.05):
                if key.fileobj is self.listener:
                    client, _ = self.listener.accept()
                    try:
                        server = socket.create_connection(("127.0.0.1", self.target_port), 5)
                    except OSError:
                        client.close()
                        continue
                    peers[client], peers[server] = server, client
                    servers.add(server)
                    for s in (client, server):
                        selector.register(s, selectors.EVENT_READ)
                elif key.fileobj in peers:
                    try:
                        data = key.fileobj.recv(65536)
                        if data and not (self.swallow and key.fileobj in servers):
                            peers[key.fileobj].sendall(data)
                    except OSError:
                        data = b""
                    if not data:
                        drop(key.fileobj)
        for one in list(peers):
            if one in peers:
                drop(one)
        self.listener.close()
