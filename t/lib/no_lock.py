# SPDX-License-Identifier: BSD-3-Clause
"""Runs a command for which flock(2) does not lock:

    python3 no_lock.py ERROR COMMAND ...

ERROR is a name of errno, or "vain": then the call says that it has locked, as
where a file system locks for one host only."""

import ctypes
import errno
import os
import platform
import struct
import sys

# linux/prctl.h, linux/seccomp.h, linux/filter.h
PR_SET_SECCOMP = 22
PR_SET_NO_NEW_PRIVS = 38
SECCOMP_MODE_FILTER = 2
RET_ALLOW = 0x7fff0000
RET_ERRNO = 0x00050000
LOAD_WORD = 0x20   # BPF_LD | BPF_W | BPF_ABS
JUMP_EQUAL = 0x15  # BPF_JMP | BPF_JEQ | BPF_K
RETURN = 0x06      # BPF_RET | BPF_K

FLOCK = {"x86_64": 73, "aarch64": 32, "riscv64": 32}


def can_be_done():
    """Whether the number of the call is known."""
    return platform.machine() in FLOCK


def forbid(error):
    program = b"".join(struct.pack("HBBI", *step) for step in (
        (LOAD_WORD, 0, 0, 0),  # the number of the call
        (JUMP_EQUAL, 0, 1, FLOCK[platform.machine()]),
        (RETURN, 0, 0, RET_ERRNO | error),
        (RETURN, 0, 0, RET_ALLOW)))
    room = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HP", len(program) // 8, ctypes.addressof(room))
    libc = ctypes.CDLL(None, use_errno=True)
    for words in ((PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
                  (PR_SET_SECCOMP, SECCOMP_MODE_FILTER,
                   ctypes.create_string_buffer(head, len(head)), 0, 0)):
        if libc.prctl(*words) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


def main():
    forbid(0 if sys.argv[1] == "vain" else getattr(errno, sys.argv[1]))
    os.execvp(sys.argv[2], sys.argv[2:])


if __name__ == "__main__":
    main()
