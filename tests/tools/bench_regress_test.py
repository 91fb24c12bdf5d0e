"""bench_regress against two programs whose speeds are known."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parent.parent.parent / "tools" / "bench_regress"

# Prints what `bench model --json` would. Speeds come from a list, one a run, the last one again and again.
FAKE = """#!{python}
import json, pathlib
runs = pathlib.Path(__file__ + ".runs")
number = int(runs.read_text()) if runs.exists() else 0
runs.write_text(str(number + 1))
speeds = {speeds}
speed = speeds[min(number, len(speeds) - 1)]
print(json.dumps({{"results": [{{"name": "decode 32", "value": speed, "samples": [speed]}}]}}))
"""


def compare(before, after):
    with tempfile.TemporaryDirectory() as folder:
        for name, speeds in (("before", before), ("after", after)):
            path = pathlib.Path(folder) / name
            path.write_text(FAKE.format(python=sys.executable, speeds=speeds))
            path.chmod(0o755)
        return subprocess.run([TOOL, "--before", f"{folder}/before", "--after", f"{folder}/after", "--only", "decode"],
                              capture_output=True, text=True)


class BenchRegress(unittest.TestCase):
    def test_a_slowdown_fails(self):
        done = compare([100], [90])
        self.assertEqual(done.returncode, 1)
        self.assertIn("decode 32: 0.90", done.stderr)

    def test_within_the_threshold_passes(self):
        self.assertEqual(compare([100], [96]).returncode, 0)

    def test_what_is_not_confirmed_passes(self):
        done = compare([100], [80, 80, 80, 100])
        self.assertEqual(done.returncode, 0)
        self.assertIn("not confirmed", done.stdout)


if __name__ == "__main__":
    unittest.main()
