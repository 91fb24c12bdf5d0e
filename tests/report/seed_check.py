"""Analyses of another program, reproduced: from each a log in that program's record shape is made, and
tinyvllm's analysis of the log must say the same, section by section and byte by byte.

    seed_check.py build/tinyvllm
"""
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
SEEDS = sorted((HERE.parent / "data/report").glob("seed_*.txt"))
TINYVLLM = sys.argv.pop(1)


def sections(text):
    """Heading → text. The first holds the head of the page, which names the file."""
    blocks = text.strip().split("\n\n")
    return {block.split("\n")[0]: block for block in blocks[1:]}, blocks[0].split("\n")[1]


class Seeds(unittest.TestCase):
    maxDiff = None

    def test_the_analysis_of_the_made_log_is_the_seed(self):
        self.assertEqual(len(SEEDS), 2)
        for seed in SEEDS:
            with self.subTest(seed=seed.name), tempfile.TemporaryDirectory() as folder:
                log = pathlib.Path(folder) / "log.jsonl"
                subprocess.run([sys.executable, HERE / "make_seed_trace.py", seed, log], check=True)
                analysis = subprocess.run([TINYVLLM, "analyze", log], check=True, capture_output=True, text=True).stdout
                wanted, wanted_events = sections(seed.read_text())
                found, found_events = sections(analysis)
                self.assertEqual(found_events, wanted_events)
                self.assertEqual([h for h in found if h in wanted], list(wanted))
                for heading in wanted:
                    self.assertEqual(found[heading], wanted[heading])


if __name__ == "__main__":
    unittest.main()
