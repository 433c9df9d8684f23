#!/usr/bin/env python3
"""The summary of skipped tests, from what ctest writes of tests that are skipped, in part or not.

usage: test_skipped.py SOURCE_DIR
"""
import pathlib
import subprocess
import sys
import tempfile

TESTS = """
enable_testing()
add_test(NAME whole COMMAND sh -c "echo first; echo 'no vectors at x: skipped'; exit 77")
add_test(NAME silent COMMAND sh -c "echo the last line; exit 77")
add_test(NAME cmocka COMMAND printf "[ RUN      ] a\\\\n[  SKIPPED ] a\\\\n[  SKIPPED ] 1 test(s), listed below:\\\\n[  SKIPPED ] a\\\\n")
add_test(NAME unittest COMMAND echo "OK (skipped=2)")
add_test(NAME ran COMMAND echo "nothing is skipped here")
set_tests_properties(whole silent PROPERTIES SKIP_RETURN_CODE 77)
"""
SUMMARY = """2 skipped:
    silent (the last line)
    whole (no vectors at x)
2 skipped in part:
    cmocka (a)
    unittest (2 of its tests)
"""


def main():
    script = pathlib.Path(sys.argv[1]) / "scripts" / "skipped.py"
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.25)\nproject(sample LANGUAGES NONE)" + TESTS)
        for command in (["cmake", "-S", folder, "-B", folder],
                        ["ctest", "--test-dir", folder, "--output-junit", folder / "j.xml"]):
            subprocess.run(command, check=True, capture_output=True)
        found = subprocess.run([sys.executable, "-B", script, folder / "j.xml"], check=True,
                               capture_output=True, text=True).stdout
    lines = sorted(found.splitlines())
    assert lines == sorted(SUMMARY.splitlines()), found


if __name__ == "__main__":
    main()
