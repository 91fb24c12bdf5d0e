"""bench serve against a server whose every answer is known: counts, times and failures.

    bench_serve_test.py TINYVLLM
"""
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import unittest

TINYVLLM = ""
FIRST, GAP = 0.05, 0.02  # seconds to the first piece of an answer, and between pieces


class Handler(http.server.BaseHTTPRequestHandler):
    """Streams `max_tokens` pieces, in awkward cuts. The server's `mode` makes it misbehave."""
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send(self, text):
        data = text.encode()
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def do_GET(self):
        body = json.dumps({"data": [{"id": "known"}]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        server = self.server
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            server.requests.append((request, dict(self.headers)))
            server.under_way += 1
            server.most = max(server.most, server.under_way)
            number = len(server.requests)
        try:
            self.answer(server, request, number)
        finally:
            with server.lock:
                server.under_way -= 1

    def answer(self, server, request, number):
        if server.mode == "busy" and number % 2 == 0:
            self.send_response(429)
            self.send_header("Content-Length", "4")
            self.end_headers()
            self.wfile.write(b"full")
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.send(": a comment\n\n")
        time.sleep(FIRST)
        for i in range(request["max_tokens"]):
            if i > 0:
                time.sleep(GAP)
            if server.mode == "dies" and number >= 3 and i == 2:
                os._exit(1)
            piece = {"delta": {"content": "é"}} if "messages" in request else {"text": "é"}
            event = "data: " + json.dumps({"choices": [{**piece, "finish_reason": None}]}, ensure_ascii=False) + "\n\n"
            self.send(event[:20])
            self.send(event[20:])
        if server.mode != "cut":
            self.send('data: {"choices": [{"text": "", "finish_reason": "length"}]}\r\n\r\n')
            usage = {"prompt_tokens": 7, "completion_tokens": request["max_tokens"]}
            self.send("data: " + json.dumps({"choices": [], "usage": usage}) + "\n\ndata: [DONE]\n\n")
        self.wfile.write(b"0\r\n\r\n")


def make_server(mode):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.mode, server.requests, server.lock = mode, [], threading.Lock()
    server.under_way = server.most = 0
    return server


def bench(port, *words, status=0):
    done = subprocess.run([TINYVLLM, "bench", "serve", "--base-url", f"http://127.0.0.1:{port}", "--json", *words],
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == status, (done.returncode, done.stderr)
    contents = json.loads(done.stdout) if done.stdout else {"results": []}
    return {result["name"]: result for result in contents["results"]}, done.stderr


class BenchServe(unittest.TestCase):
    def serve(self, mode, *words, status=0):
        server = make_server(mode)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            return server, *bench(server.server_address[1], *words, status=status)
        finally:
            server.shutdown()
            server.server_close()

    def test_counts_and_times(self):
        server, found, _ = self.serve("fine", "--num-prompts", "6", "--max-concurrency", "3", "--random-output-len", "5",
                                      "--goodput", "ttft:10000", "e2el:100", "--api-key", "secret")
        self.assertEqual(len(server.requests), 6)
        self.assertEqual(server.most, 3)
        request, headers = server.requests[0]
        self.assertEqual((request["model"], request["max_tokens"], request["stream"]), ("known", 5, True))
        self.assertEqual(headers["Authorization"], "Bearer secret")
        self.assertEqual(len(found["TTFT"]["samples"]), 6)
        self.assertEqual(len(found["ITL"]["samples"]), 6 * 4)
        self.assertGreaterEqual(min(found["TTFT"]["samples"]), 1e3 * FIRST)
        # A busy client may see the first piece late and the next ones together, so no gap has a least length; but a
        # request's first piece and its five tokens' four gaps are all of its time.
        whole = sorted(t + 4 * gap for t, gap in zip(found["TTFT"]["samples"], found["TPOT"]["samples"]))
        for sum_of_parts, e2e in zip(whole, sorted(found["E2EL"]["samples"])):
            self.assertAlmostEqual(sum_of_parts, e2e, delta=1e-3 * e2e)
        self.assertGreater(min(found["E2EL"]["samples"]), 1e3 * (FIRST + 4 * GAP))
        self.assertEqual(found["request goodput"]["value"], 0)  # the pauses alone take longer
        ratio = found["total throughput"]["value"] / found["output throughput"]["value"]
        self.assertAlmostEqual(ratio, (7 + 5) / 5)

    def test_poisson_arrivals_and_chat(self):
        with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
            file.write('{"messages": [{"role": "user", "content": "a \\"b\\""}], "max_tokens": 2}\n\n{"prompt": "c"}\n')
            file.flush()
            server, found, _ = self.serve("fine", "--num-prompts", "8", "--request-rate", "20", "--dataset-path",
                                          file.name, "--random-output-len", "3", "--endpoint", "/v1/chat/completions")
        self.assertEqual([request["max_tokens"] for request, _ in server.requests].count(2), 4)
        said = {request["messages"][0]["content"] for request, _ in server.requests}
        self.assertEqual(said, {'a "b"', "c"})
        self.assertLess(found["request throughput"]["value"], 60)  # not all at once

    def test_refusals_are_counted(self):
        _, found, message = self.serve("busy", "--num-prompts", "4", "--random-output-len", "2", status=1)
        self.assertEqual(len(found["TTFT"]["samples"]), 2)
        self.assertIn("2 of 4 requests failed: 2 × HTTP status 429: full", message)

    def test_a_stream_that_is_cut_is_a_failure(self):
        _, _, message = self.serve("cut", "--num-prompts", "2", "--random-output-len", "2", status=1)
        self.assertIn("the stream ended before the answer did", message)

    def test_a_server_that_dies_is_reported(self):
        server = make_server("dies")
        child = os.fork()
        if child == 0:
            server.serve_forever()
        server.server_close()
        found, message = bench(server.server_address[1], "--num-prompts", "8", "--max-concurrency", "1",
                               "--random-output-len", "4", status=1)
        os.waitpid(child, 0)
        self.assertEqual(len(found["TTFT"]["samples"]), 2)
        self.assertIn("were never sent", message)

    def test_nobody_there_and_wrong_words(self):
        self.assertIn("/v1/models", bench(1, status=1)[1])
        self.assertIn("--goodput", bench(1, "--goodput", "speed:3", status=1)[1])


if __name__ == "__main__":
    TINYVLLM = sys.argv.pop(1)
    unittest.main()
