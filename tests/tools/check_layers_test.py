"""Plants violations in a copy of a small house and sees each caught by name."""
import pathlib
import subprocess
import tempfile
import unittest

TOOL = pathlib.Path(__file__).resolve().parents[2] / "tools/check_layers"


def check(files):
    with tempfile.TemporaryDirectory() as root:
        for name, text in files.items():
            path = pathlib.Path(root) / "src" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([TOOL, root], capture_output=True, text=True)
        return done.returncode, done.stderr


class CheckLayers(unittest.TestCase):
    def test_a_clean_house_passes(self):
        status, _ = check({"ops/a.cc": '#include "ops/a.h"\n#include "core/batch.h"\n#include <vector>\n'})
        self.assertEqual(status, 0)

    def test_violations_are_named(self):
        for name, include, rule in [
            ("base/a.h", "core/batch.h", "base is level 0, core is level 1"),
            ("io/a.cc", "text/tokenizer.h", "io is level 1, text is level 1"),
            ("ops/a.cc", "model/model.h", "ops is level 2, model is level 3"),
            ("sched/a.h", "ops/linear.h", "sched sees only base, core, kv, telemetry"),
            ("server/a.cc", "kv/block_pool.h", "server never sees kv"),
            ("kv/a.cc", "sample/sampler.h", "kv is level 2, sample is level 2"),
            ("io/a.cc", "../base/log.h", "includes start with the folder's name"),
            ("io/a.cc", "gguf.h", "includes start with the folder's name"),
            ("attic/a.cc", "base/log.h", "'attic' is not a folder of the house"),
        ]:
            status, said = check({name: f'// head\n#include "{include}"\n'})
            self.assertEqual(status, 1, name)
            self.assertIn(f"src/{name}:2: ", said)
            self.assertIn(rule, said)

    def test_only_the_lower_floors_know_which_device_runs(self):
        for name, line, passes in [
            ("ops/a.cc", "if (device.kind() == DeviceKind::kCuda) return;", True),
            ("engine/a.cc", "if (device.kind() == DeviceKind::kCuda) return;", False),
            ("model/a.cc", '#include "ops/cuda/ops.h"', False),
            ("engine/a.cc", '#include "device/cpu/cpu_device.h"', False),
            ("../apps/run.cc", "if (device.kind() == DeviceKind::kCpu) return;", False),
            ("device/a.cc", "options.device = DeviceKind::kCuda;", True),
        ]:
            status, said = check({name: f"// head\n{line}\n"})
            self.assertEqual(status, 0 if passes else 1, name)
            if not passes:
                self.assertIn(f"{name.rsplit('/', 1)[1]}:2: ", said)
                self.assertIn("asks which device runs", said)


if __name__ == "__main__":
    unittest.main()
