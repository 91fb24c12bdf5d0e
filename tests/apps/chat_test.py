"""tinyvllm chat as a person meets it, typed into a pseudo-terminal; and as a script does, through pipes.

    chat_test.py PATH_TO_TINYVLLM
"""
import fcntl
import json
import os
import pathlib
import pty
import re
import select
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

BINARY = sys.argv.pop(1)
PROMPT = ">\033[0m "  # waits for input
PATIENCE = 30


class Terminal:
    """A chat in a terminal of its own."""

    def __init__(self, folder, *flags, columns=80):
        self.seen = ""
        environment = {**os.environ, "TERM": "xterm-256color", "XDG_STATE_HOME": str(folder), "LC_ALL": "C"}
        environment.pop("NO_COLOR", None)
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(BINARY, [BINARY, "chat", "smollm2", "--seed", "1", *flags], environment)
        self.resize(columns)

    def resize(self, columns):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))

    def type(self, text):
        os.write(self.fd, text.encode())

    def wait_for(self, pattern):
        """What was shown up to and with the pattern; it is not looked at again."""
        deadline = time.time() + PATIENCE
        while not (found := re.search(pattern, self.seen, re.DOTALL)):
            ready, _, _ = select.select([self.fd], [], [], deadline - time.time())
            try:
                data = os.read(self.fd, 65536) if ready else b""
            except OSError:  # the other side is gone
                data = b""
            if not data:
                raise AssertionError(f"no {pattern!r} in {self.seen!r}")
            self.seen += data.decode(errors="replace")
        shown, self.seen = self.seen[:found.end()], self.seen[found.end():]
        return shown

    def ask(self, text):
        """Types a line, and gives what was shown after it until the next prompt."""
        self.type(text + "\r")
        self.wait_for("\n")
        shown = self.wait_for(r"\033\[\?2004h")
        self.wait_for(re.escape(PROMPT))
        return re.sub(r"\033\[[?\d;]*[A-Za-z]", "", shown).replace("\r", "")

    def close(self):
        """Waits for the chat to end, and gives its exit status."""
        try:
            while os.read(self.fd, 65536):
                pass
        except OSError:
            pass
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class Chat(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def chat(self, *flags, **options):
        terminal = Terminal(self.folder, *flags, **options)
        terminal.wait_for(re.escape(PROMPT))
        return terminal

    def test_a_conversation(self):
        chat = self.chat("--temperature", "0", "--max-tokens", "40")
        first = chat.ask("What is the capital of France?")
        chat.ask("And of Italy?")
        stats = chat.ask("/stats")
        self.assertIn("2 questions", stats)
        prompt, cached = map(int, re.search(r"(\d+) tokens, (\d+) of them cached", stats).groups())
        self.assertGreaterEqual(cached, 48)  # the first turn's question and answer, but a last block
        self.assertLess(cached, prompt)

        again = chat.ask("/regenerate")
        self.assertEqual(again, chat.ask("/regenerate"))  # greedy: the same answer
        self.assertEqual(chat.ask("/set temperature 5"), "")
        self.assertNotEqual(chat.ask("/regenerate"), again)
        self.assertIn("2 questions", chat.ask("/stats"))

        saved = self.folder / "talk.json"
        self.assertEqual(chat.ask(f"/save {saved}"), "")
        messages = json.loads(saved.read_text())["messages"]
        self.assertEqual([message["role"] for message in messages], ["user", "assistant"] * 2)
        self.assertEqual(messages[0]["content"], "What is the capital of France?")
        self.assertTrue(first.startswith(messages[1]["content"]), first)
        chat.ask("/reset")
        self.assertIn("0 questions", chat.ask("/stats"))
        self.assertIn("2 questions and answers", chat.ask(f"/load {saved}"))
        self.assertIn("2 questions", chat.ask("/stats"))
        chat.type("/quit\r")
        self.assertEqual(chat.close(), 0)

    def test_ctrl_c_stops_the_answer_and_not_the_program(self):
        chat = self.chat("--ignore-eos")
        chat.type("Count to a million\r")
        chat.wait_for("\n.*?[a-zA-Z0-9]{3}")
        chat.type("\x03")
        chat.wait_for("stopped")
        chat.wait_for(re.escape(PROMPT))
        chat.type("half a line\x03")  # and at the prompt it drops the line
        chat.wait_for(re.escape(PROMPT))
        self.assertIn("1 questions", chat.ask("/stats"))
        chat.type("\x04")
        self.assertEqual(chat.close(), 0)

    def test_messages_of_several_lines(self):
        chat = self.chat("--max-tokens", "1")
        chat.type("one\\\rtwo\r")
        chat.wait_for("reached")
        chat.wait_for(re.escape(PROMPT))
        chat.type('"""three\r\rfour"""\r')
        chat.wait_for("reached")
        chat.wait_for(re.escape(PROMPT))
        chat.type("\033[200~five\rsix 七🙂\r\033[201~!\r")
        chat.wait_for("reached")
        chat.wait_for(re.escape(PROMPT))
        chat.type("seven\033\reight\r")
        chat.wait_for("reached")
        chat.wait_for(re.escape(PROMPT))
        saved = self.folder / "talk.json"
        chat.ask(f"/save {saved}")
        self.assertEqual([m["content"] for m in json.loads(saved.read_text())["messages"][::2]],
                         ["one\ntwo", "three\n\nfour", "five\nsix 七🙂!", "seven\neight"])
        chat.type("\x04")
        chat.close()

    def test_editing_and_history(self):
        chat = self.chat("--max-tokens", "1", columns=60)
        chat.type("你好🙂x\033[D\033[D\x7fé\r")  # left, left, backspace: 好 goes, é comes
        chat.wait_for("reached")
        chat.wait_for(re.escape(PROMPT))
        chat.resize(40)
        chat.type("\033[A!\r")  # up: the same again, and more
        chat.wait_for("reached")
        chat.wait_for(re.escape(PROMPT))
        saved = self.folder / "talk.json"
        chat.ask(f"/save {saved}")
        self.assertEqual([m["content"] for m in json.loads(saved.read_text())["messages"][::2]],
                         ["你é🙂x", "你é🙂x!"])
        chat.type("\x04")
        chat.close()
        history = self.folder / "tinyvllm/chat_history"
        self.assertEqual(history.stat().st_mode & 0o777, 0o600)
        chat = self.chat("--max-tokens", "1")
        chat.type("\033[A\033[A\r")  # over /save to the last message
        chat.wait_for("reached")
        chat.wait_for(re.escape(PROMPT))
        chat.ask(f"/save {saved}")
        self.assertEqual(json.loads(saved.read_text())["messages"][0]["content"], "你é🙂x!")
        chat.type("\x04")
        chat.close()

    def test_mistakes_are_words(self):
        lines = ["/nosuch", "/set temperature -1", "/set nosuch 1", "/set n 2", "/regenerate", "/load /nonexistent",
                 "/save", "/quit now", "/set top_k many"]
        notes = self.folder / "notes"
        notes.write_text("mine")
        lines.append(f"/save {notes}")
        done = subprocess.run([BINARY, "chat"], input="\n".join(lines), capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0)
        problems = done.stderr.splitlines()
        self.assertEqual(len(problems), len(lines), done.stderr)
        for problem, word in zip(problems, ["/nosuch", "temperature", "nosuch", "n:", "no answer", "/nonexistent",
                                            "file", "now", "top_k", "notes"]):
            self.assertRegex(problem, "^error: .*" + re.escape(word))
        self.assertEqual(notes.read_text(), "mine")

    def test_through_pipes(self):
        done = subprocess.run([BINARY, "chat", "--temperature", "0", "--system", "You are terse.", "-n", "8"],
                              input="/system\nHi\n//home\n/set temperature\n/stats\n/help\n", capture_output=True,
                              text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("You are terse.", done.stdout)
        self.assertIn("2 questions", done.stdout)
        self.assertRegex(done.stdout, r"temperature +0 ")
        self.assertIn("/regenerate", done.stdout)
        self.assertNotIn("\033", done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
