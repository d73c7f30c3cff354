# SPDX-License-Identifier: BSD-3-Clause
"""Tests that report in TAP, for the scripts of t/system.

A script marks its tests with @test("what is shown") and ends with run(). The
plan comes first; a test passes when its function returns, fails when it
raises, and is skipped when it raises Skip with the reason.
"""

import ctypes
import os
import signal
import sys
import traceback

PR_SET_PDEATHSIG = 1  # linux/prctl.h
TESTS = []


class Skip(Exception):
    """Raised by a test that cannot run on this machine; says why."""


def test(description):
    """Registers the decorated function, which takes no arguments."""

    def register(function):
        TESTS.append((description, function))
        return function

    return register


def add(description, function, *arguments):
    """Registers a call of function, for tests made in a loop."""
    TESTS.append((description, lambda: function(*arguments)))


def note(text):
    """Prints text as a TAP comment."""
    for line in str(text).splitlines():
        print("# " + line)
    sys.stdout.flush()


def equal(got, wanted, what=""):
    """Raises unless the two are equal."""
    if got != wanted:
        raise AssertionError(
            "%s\n  got    %.2000r\n  wanted %.2000r" % (what, got, wanted)
        )


def check(condition, what):
    """Raises unless condition holds."""
    if not condition:
        raise AssertionError(what)


def interrupt(*_):
    raise KeyboardInterrupt


def stand_apart():
    """Makes a session of its own of this program and its servers: Linux shares
    a machine among sessions first (autogroup in sched(7)). Else what a server
    does at a lower priority waits for whatever runs beside the test, other
    tests and compilers, and a test that waits for that takes minutes. Ends
    with who started it all the same. One that a terminal may interrupt stays
    where it is, and so does one that a shell has made the first of a group."""
    starter = os.getppid()
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_CLOEXEC))
        return
    except OSError:
        pass  # no terminal
    try:
        os.setsid()
    except PermissionError:
        return
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != starter:
        sys.exit("whoever has started this test is gone")


def run():
    """Runs what was registered; exits non-zero when a test failed. A run that
    is told to end stops its servers first."""
    signal.signal(signal.SIGTERM, interrupt)
    stand_apart()
    if len(sys.argv) > 1:
        wanted = sys.argv[1]
        TESTS[:] = [entry for entry in TESTS if wanted in entry[0]]
    print("1..%d" % len(TESTS))
    failed = 0
    for number, (description, function) in enumerate(TESTS, 1):
        try:
            function()
            print("ok %d %s" % (number, description))
        except Skip as why:
            print("ok %d # SKIP %s: %s" % (number, description, why))
        except BaseException as error:
            failed += 1
            note(traceback.format_exc())
            print("not ok %d %s" % (number, description))
            if isinstance(error, KeyboardInterrupt):
                print("Bail out! interrupted")
                break
        sys.stdout.flush()
    sys.exit(1 if failed else 0)
