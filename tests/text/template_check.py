"""Renders templates here and with Jinja2, and wants the same text, or a refusal from both.

    template_check.py DRIVER [--programs N] [--first SEED] [--every N]

First the templates in tests/data/templates meet all conversations of template_conversations; then
come every N-th of template_cases, and N random programs, each with four random conversations."""
import argparse
import json
import pathlib
import re
import subprocess
import sys
import warnings

import template_cases
import template_conversations
from jinja_reference import make_environment, render_all
from template_programs import Conversations, Programs

STYLES = pathlib.Path(__file__).parent.parent / "data" / "templates"
# Where an object lies in memory, which Python prints for some, is never the same twice.
ADDRESS = re.compile(r"0x[0-9a-f]{6}|<built-in|iterator object", re.IGNORECASE)


class Driver:
    def __init__(self, path):
        self.process = subprocess.Popen([path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def render_all(self, source, contexts):
        self.process.stdin.write(json.dumps({"template": source, "contexts": contexts}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"the driver died of {source!r}\nwith {json.dumps(contexts)}")
        return json.loads(line)


def same(reference, ours):
    if isinstance(reference, Exception):
        return "error" in ours
    return bool(ADDRESS.search(reference)) or ours.get("text") == reference


class Comparison:
    def __init__(self, driver):
        self.driver = Driver(driver)
        self.environment = make_environment()
        self.pairs = self.rendered = self.differences = 0

    def compare(self, name, source, contexts):
        references = render_all(self.environment, source, contexts)
        for context, reference, ours in zip(contexts, references, self.driver.render_all(source, contexts)):
            self.pairs += 1
            self.rendered += not isinstance(reference, Exception)
            if not same(reference, ours):
                self.differences += 1
                print(f"--- {name}\n{source!r}\nwith {json.dumps(context)}\nJinja2: {reference!r}\nours:   {ours}", flush=True)

    def report(self, name):
        print(f"{name}: {self.pairs} pairs, {self.rendered} rendered, {self.differences} differences", flush=True)
        failed, self.pairs, self.rendered, self.differences = self.differences, 0, 0, 0
        return failed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("driver")
    parser.add_argument("--programs", type=int, default=500)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--every", type=int, default=15)
    options = parser.parse_args()
    warnings.simplefilter("ignore", SyntaxWarning)
    comparison = Comparison(options.driver)

    contexts = list(template_conversations.contexts())
    for path in sorted(STYLES.glob("*.jinja")):
        comparison.compare(path.name, path.read_text(), contexts)
    failed = comparison.report("styles")

    for source in list(template_cases.cases())[:: options.every]:
        comparison.compare("case", source, [template_cases.CONTEXT])
    failed += comparison.report("cases")

    for seed in range(options.first, options.first + options.programs):
        conversations = Conversations(seed)
        comparison.compare(f"program {seed}", Programs(seed).program(), [conversations.context() for _ in range(4)])
    failed += comparison.report("programs")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
