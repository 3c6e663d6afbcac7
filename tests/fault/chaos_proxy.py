"""TCP proxies between the workers and the servers, which cut, stall, slow down and lose what passes through them.

They live in a process of their own, so that they neither wait for the load nor it for them.
"""

import asyncio
import contextlib
import multiprocessing
import random
import socket
import struct

CHUNK = 65536
RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close sends RST
ANSWER_SECONDS = 10


class Link:
    """One connection of a client, and ours to the server behind."""

    def __init__(self, client, server):
        self.writers = (client, server)
        self.open = {"up": asyncio.Event(), "down": asyncio.Event()}
        for event in self.open.values():
            event.set()

    def hold(self, *directions):
        """Nothing passes any more, and nobody is told."""
        for direction in directions:
            self.open[direction].clear()

    def reset(self):
        """Both ends see the connection reset."""
        for writer in self.writers:
            sock = writer.get_extra_info("socket")
            with contextlib.suppress(OSError, ValueError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            writer.transport.abort()


class Proxy:
    """Listens on a port of its own and passes on to `target`, while it lets anything pass."""

    def __init__(self, seed):
        self.target = None
        self.links = set()
        self.random = random.Random(seed)
        self.held = None  # (share of new connections that are held, directions)
        self.refuses = False
        self.delay = 0.0
        self.rate = 0.0  # bytes a second and connection; 0: as fast as it goes

    async def listen(self):
        """Returns the port."""
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return server.sockets[0].getsockname()[1]

    async def _serve(self, reader, writer):
        link, tasks = None, []
        try:
            if self.refuses or self.target is None:
                Link(writer, writer).reset()
                return
            there, back = await asyncio.open_connection(*self.target)
            link = Link(writer, back)
            self.links.add(link)
            if self.held is not None and self.random.random() < self.held[0]:
                link.hold(*self.held[1])
            ways = [self._pump(link, "up", reader, back), self._pump(link, "down", there, writer)]
            tasks = [asyncio.ensure_future(way) for way in ways]
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        except OSError:
            pass
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            if link is not None:
                self.links.discard(link)
                link.reset()
            writer.transport.abort()

    async def _pump(self, link, direction, reader, writer):
        with contextlib.suppress(OSError):
            while True:
                data = await reader.read(CHUNK)
                if not data:
                    return
                await link.open[direction].wait()
                wait = self.delay + (len(data) / self.rate if self.rate else 0.0)
                if wait:
                    await asyncio.sleep(wait)
                writer.write(data)
                await writer.drain()

    # -- faults --

    def reset(self):
        """Every connection, once."""
        for link in list(self.links):
            link.reset()

    def cut(self):
        """Every connection, and every trial to make one, until it is healed."""
        self.refuses = True
        self.reset()

    def hold(self, share, *directions):
        """A share of the connections keeps silent in these directions, until it is healed."""
        self.held = (share, directions)
        for link in list(self.links):
            if self.random.random() < share:
                link.hold(*directions)

    def slow(self, delay, rate):
        """Each piece is late, and no connection is fast."""
        self.delay, self.rate = delay, rate

    def heal(self, break_held):
        """Everything passes again; what was held is lost with its connections, or comes late."""
        self.refuses, self.held, self.delay, self.rate = False, None, 0.0, 0.0
        for link in list(self.links):
            if all(event.is_set() for event in link.open.values()):
                continue
            if break_held:
                link.reset()
            else:
                for event in link.open.values():
                    event.set()

    def lead_to(self, host, port):
        """Where connections are passed on to."""
        self.target = (host, port)


async def _obey(pipe, seed, names):
    proxies = {name: Proxy(seed + name) for name in names}
    pipe.send({name: await proxy.listen() for name, proxy in proxies.items()})
    loop = asyncio.get_running_loop()
    while True:
        order = await loop.run_in_executor(None, pipe.recv)
        if order is None:
            return
        name, method, arguments = order
        getattr(proxies[name], method)(*arguments)
        pipe.send(len(proxies[name].links))


def _main(pipe, seed, names):
    with contextlib.suppress(EOFError, KeyboardInterrupt):
        asyncio.run(_obey(pipe, seed, names))


class Network:
    """The proxies, as the process that breaks things sees them: network.order("kafka", "cut")."""

    def __init__(self, seed, *names):
        context = multiprocessing.get_context("fork")
        self._pipe, there = context.Pipe()
        self._lock = context.Lock()
        self._process = context.Process(target=_main, args=(there, str(seed), names), daemon=True)
        self._process.start()
        self.ports = self._pipe.recv()

    def order(self, name, method, *arguments):
        """Carry out a method of a proxy; returns how many connections it has then."""
        with self._lock:
            self._pipe.send((name, method, arguments))
            if not self._pipe.poll(ANSWER_SECONDS):
                raise RuntimeError(f"the proxy for {name} does not answer to {method}")
            return self._pipe.recv()

    def close(self):
        """End the process."""
        with contextlib.suppress(OSError):
            self._pipe.send(None)
        self._process.join(5)
        self._process.kill()
