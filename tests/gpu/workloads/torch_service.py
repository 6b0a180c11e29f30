"""torch_service.py [leaks] [tells]: an inference service for service.py. Prints its port and process number, serves until it is killed.

One thread answers requests of random shape: pictures, text, both through a model. Caches fill up and stay full: states by session,
what many requests begin with, a workspace that grows with the largest request. With `leaks` every hundredth summary is kept
somewhere for good. With `tells` it says where it is: ranges of NVTX for each request and its parts, a mark for each hundred.
GET /stats: what PyTorch and the program itself know, as JSON.
"""
import collections
import ctypes
import http.server
import json
import os
import sys
import time

import torch

WIDTH, VOCABULARY, LONGEST = 256, 8000, 448
MAX_SESSIONS, N_PREFIXES, EVERY = 256, 160, 100
SUMMARY_ROWS = 256
DEVICE = torch.device("cuda")


class Vision(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 32, 7, stride=2, padding=3)
        self.second = torch.nn.Conv2d(32, 64, 3, stride=2, padding=1)
        self.out = torch.nn.Linear(64, WIDTH)

    def forward(self, picture):
        features = torch.relu(self.second(torch.relu(self.first(picture))))
        return self.out(features.mean(dim=(2, 3)))


class Text(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(VOCABULARY, WIDTH)
        self.layers = torch.nn.ModuleList(
            torch.nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0, batch_first=True) for _ in range(2))
        self.out = torch.nn.Linear(WIDTH, VOCABULARY)

    def forward(self, tokens):
        states = self.embedding(tokens)
        for layer in self.layers:
            states = layer(states)
        return states


def summarise(states):
    mean = states.mean(dim=1)
    return mean.repeat(SUMMARY_ROWS, 1)  # the leak: one of a hundred is kept


class Teller:
    """Where the program is, for whoever listens."""
    def __init__(self, tells):
        self.tells, self.n_ranges, self.n_marks = tells, collections.Counter(), 0
        self.recorder = ctypes.CDLL(None)

    def begin(self, name):
        if self.tells:
            torch.cuda.nvtx.range_push(name)
            self.n_ranges[name] += 1

    def end(self):
        if self.tells:
            torch.cuda.nvtx.range_pop()

    def mark(self, name):
        if self.tells and hasattr(self.recorder, "vramtrace_mark"):
            self.recorder.vramtrace_mark(name.encode())
            self.n_marks += 1


class Service:
    def __init__(self, leaks, tells):
        self.vision, self.text = Vision().to(DEVICE).eval(), Text().to(DEVICE).eval()
        self.sessions, self.prefixes, self.workspace = collections.OrderedDict(), {}, None
        self.leaks, self.kept, self.kept_ns, self.n_requests = leaks, [], [], 0
        self.teller = Teller(tells)

    def prefix(self, number):
        """What many requests begin with: made when it is first asked for."""
        if number not in self.prefixes:
            self.prefixes[number] = torch.zeros(2, 16 + number, WIDTH, device=DEVICE)
        return self.prefixes[number]

    def remember(self, session, states):
        """Of the last sessions; the oldest goes."""
        self.sessions[session] = torch.cat((states, states), dim=2)
        self.sessions.move_to_end(session)
        if len(self.sessions) > MAX_SESSIONS:
            self.sessions.popitem(last=False)

    def room(self, rows):
        """As large as the largest request so far."""
        if self.workspace is None or self.workspace.shape[0] < rows:
            self.workspace = torch.empty(rows, VOCABULARY, device=DEVICE)
        return self.workspace[:rows]

    def answer(self, request):
        if self.n_requests % EVERY == 0:
            self.teller.mark(f"hundred {self.n_requests // EVERY}")
        self.teller.begin("request")
        self.n_requests += 1
        self.teller.begin("look")
        picture = torch.rand(1, 3, request["height"], request["width"], device=DEVICE)
        seen = self.vision(picture)
        self.teller.end()
        self.teller.begin("read")
        tokens = torch.randint(VOCABULARY, (1, request["length"]), device=DEVICE)
        states = self.text(tokens) + seen[:, None]
        first = self.prefix(request["prefix"]).mean()
        self.teller.end()
        self.remember(request["session"], states)
        logits = torch.matmul(states[0], self.text.out.weight.t(), out=self.room(request["length"]))
        summary = summarise(states)
        if self.leaks and self.n_requests % EVERY == 0:
            self.kept.append(summary)
            self.kept_ns.append(time.monotonic_ns())
        word = int((logits[-1] + first).argmax())
        self.teller.end()
        return {"word": word}

    def stats(self):
        torch.cuda.synchronize()
        bytes_each = SUMMARY_ROWS * WIDTH * 4
        return {"requests": self.n_requests, "kept": len(self.kept), "kept_ns": self.kept_ns, "kept_bytes": len(self.kept) * bytes_each, "bytes_each": bytes_each,
                "sessions": len(self.sessions), "prefixes": len(self.prefixes), "ranges": self.teller.n_ranges, "marks": self.teller.n_marks,
                "memory": torch.cuda.memory_stats()}


class Handler(http.server.BaseHTTPRequestHandler):
    def reply(self, what):
        body = json.dumps(what).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with torch.inference_mode():
            answer = service.answer(request)
        self.reply(answer)

    def do_GET(self):
        self.reply(service.stats())

    def log_message(self, *arguments):
        pass


service = Service("leaks" in sys.argv[1:], "tells" in sys.argv[1:])
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(json.dumps({"port": server.server_port, "pid": os.getpid()}), flush=True)
server.serve_forever()
