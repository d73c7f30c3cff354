# SPDX-License-Identifier: BSD-3-Clause
"""How the parts are divided into tests, for t/system/durability-*.test with
small counts and for t/torture/run with large ones."""

import concurrent.futures
import contextlib
import errno
import itertools
import os
import random
import sys

import blocks
import cold_likes
import damage
import devices
import episodes
import failover
import faults
import history_batch
import kill
import late
import likes
import node_points
import oracle
import order
import points
import power
import reads
import replicas
import reshard
import reshard_by_hand
import server
import slow
import tap
from disk import MIB

SEED = int(os.environ.get("SEED", random.SystemRandom().randrange(10**9)))
# One of so many things of a kind is done; 1: all.
SHARE = int(os.environ.get("SHARE", 1))
CHUNK = 50
HISTORIES_CHUNK = 1000
BY_HAND_TRIES = 4
JOBS = 2  # points at a time: most of a point is waiting


def tell(text):
    """Progress, where somebody is looking."""
    if sys.stderr.isatty():
        print("\r\033[K" + text, end="", file=sys.stderr, flush=True)


def note_seed():
    tap.note("SEED=%d" % SEED)


def share(count):
    """How many of count things of a kind."""
    return max(1, count // SHARE)


def some(things):
    """Those of a list, at least one; which, the seed says."""
    things = list(things)
    if SHARE > 1:
        random.Random("share %d" % SEED).shuffle(things)
    return things[:share(len(things))]


def add_kills(count):
    """count kills in all, over the modes."""
    modes = len(kill.MODES)
    for number, mode in enumerate(kill.MODES):
        left = max(1, (count + number) // modes)  # they add up to count
        part = 0
        while left > 0:
            lives = min(left, CHUNK)
            tap.add("--sync=%s: kill -9 at random times, %d lives%s" % (
                mode, lives, ", part %d" % part if part else ""),
                run_kills, mode, lives, SEED + part)
            left -= lives
            part += 1


def run_kills(mode, lives, seed):
    acked, seals = kill.kill_cycles(mode, lives, seed, tell=tell)
    tap.note("%d changes acknowledged, %d counters sealed" % (acked, seals))


def add_points(count, strace_count):
    """count calls at which the server ends, strace_count of them by strace;
    0: all."""
    tap.add("strace and the preloaded library count the same calls",
            run_same_count)
    if count == 0:
        for mode in kill.MODES:
            for way in points.WAYS:
                tap.add("--sync=%s: %s every call" % (mode, way),
                        run_all_points, mode, way)
            for call in points.STRACE_CALLS:
                tap.add("--sync=%s: every %s of a thread, by strace" % (
                    mode, call), run_all_strace, mode, call)
        return
    for first in range(0, count - strace_count, CHUNK):
        tap.add("ended at %d calls, from the %d-th on" % (
            min(CHUNK, count - strace_count - first), first + 1),
            run_points, first, min(first + CHUNK, count - strace_count),
            count - strace_count)
    tap.add("ended at %d calls by strace" % strace_count, run_strace,
            strace_count)


def run_same_count():
    shim, strace = points.shim_sees_all(SEED)
    for call, number in strace.items():
        tap.equal(shim[call], number, call)


def all_of(functions):
    """Runs them, some at a time; raises the first error."""
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        waiting = [pool.submit(*function) for function in functions]
        try:
            return [job.result() for job in
                    concurrent.futures.as_completed(waiting)]
        except BaseException:
            for job in waiting:
                job.cancel()
            raise


SAMPLES = {}


def run_points(first, last, count):
    if "points" not in SAMPLES:
        SAMPLES["points"], counts = points.sample(SEED, count)
        tap.note(counts)
    chosen = SAMPLES["points"][first:last]
    died = all_of((points.point, SEED + number, mode, call, way, at)
                  for number, (mode, call, way, at) in enumerate(chosen))
    tap.note("%d of %d died" % (sum(died), len(died)))
    tap.check(sum(died) > len(died) // 2, "most points must be reached")


def run_strace(count):
    points.need_strace()
    source = random.Random(SEED)
    chosen = []
    while len(chosen) < count:
        mode = source.choice(kill.MODES)
        call = points.STRACE_CALLS[len(chosen) % len(points.STRACE_CALLS)]
        chosen.append((SEED + len(chosen), mode, call,
                       1 + int(source.expovariate(0.2))))
    died = all_of((points.strace_point, *one) for one in chosen)
    tap.note("%d of %d died" % (sum(died), len(died)))
    tap.check(sum(died) > 0, "no call was met")


def run_all_points(mode, way):
    number = 1
    while points.point(SEED, mode, "any", way, number):
        tell("%s, %s call %d" % (mode, way, number))
        number += 1
    tap.note("%d points" % (number - 1))
    tap.check(number > 10, "points")


def run_all_strace(mode, call):
    points.need_strace()
    number = 1
    while points.strace_point(SEED, mode, call, number):
        tell("%s, %s number %d" % (mode, call, number))
        number += 1
    tap.note("%d points" % (number - 1))


def add_power(count):
    """count cuts on each kind of file system, over two modes."""
    for kind in ("ext4", "xfs"):
        for mode in ("always", "interval"):
            part = 0
            left = max(1, count // 2)
            while left > 0:
                cuts = min(left, CHUNK)
                tap.add("%s, --sync=%s: the power is cut %d times%s" % (
                    kind, mode, cuts, ", part %d" % part if part else ""),
                    run_power, kind, mode, cuts, SEED + part)
                left -= cuts
                part += 1
        for mode in ("always", "interval"):
            tap.add("%s, --sync=%s: a server that leaves syncs out is found "
                    "out" % (kind, mode), run_no_sync, kind, mode)


def run_power(kind, mode, cuts, seed):
    acked = power.power_cuts(kind, mode, cuts, seed, tell=tell)
    tap.note("%d changes acknowledged" % acked)


def run_no_sync(kind, mode):
    try:
        power.power_cuts(kind, mode, 10, SEED, no_sync=True)
    except power.Lost as error:
        tap.note(str(error)[:500])
        return
    raise AssertionError("10 cuts without a sync, and nothing is missed")


def add_blocks(count):
    """count states of ext4 at the block level, over two modes; of each run
    some."""
    for mode in ("always", "interval"):
        part = 0
        left = max(1, count // 2)
        while left > 0:
            states = min(left, blocks.STATES_EACH)
            tap.add("ext4, --sync=%s: %d states of the disk after a cut%s" % (
                mode, states, ", part %d" % part if part else ""),
                run_blocks, "ext4", mode, states, SEED + part)
            left -= states
            part += 1
    for mode in ("always", "interval"):
        tap.add("ext4, --sync=%s: a server that leaves syncs out is found "
                "out in states of the disk" % mode, run_blocks_no_sync,
                "ext4", mode)


def run_blocks(kind, mode, count, seed):
    works, rotated = blocks.block_states(kind, mode, count, seed, tell=tell)
    tap.check(min(works.values()) > 0, "checkpoints and seals: %r" % works)
    tap.check(rotated > 0, "the log must have been rotated")


def run_blocks_no_sync(kind, mode):
    try:
        blocks.block_states(kind, mode, 20, SEED, no_sync=True)
    except blocks.Lost as error:
        tap.note(str(error)[:500])
        return
    raise AssertionError("20 states without a sync, and nothing is missed")


def add_episodes(count, longest_s=episodes.LONGEST_S):
    """count times of I/O errors on each kind of file system."""
    for kind in ("ext4", "xfs"):
        part = 0
        left = max(1, count)
        while left > 0:
            number = min(left, CHUNK)
            tap.add("%s, --sync=always: the disk fails %d times for up to "
                    "%.1f s%s" % (kind, number, longest_s,
                                  ", part %d" % part if part else ""),
                    run_episodes, kind, number, SEED + part, longest_s)
            left -= number
            part += 1


def run_episodes(kind, count, seed, longest_s):
    acked, refused, given_up = episodes.io_episodes(
        kind, "always", count, seed, longest_s, tell=tell)
    tap.note("%d changes acknowledged, %d refused; the file system gave up "
             "%d times" % (acked, refused, given_up))
    tap.check(refused > 0, "no call failed")


def add_full():
    for mode in ("interval", "always"):
        for starts_full in (False, True):
            tap.add("ext4 of 24 MiB fills up, --sync=%s%s" % (
                mode, "; a start while it is full" if starts_full else ""),
                faults.full_disk, "ext4", SEED, mode, 24 * MIB, starts_full)
        tap.add("ext4 of 24 MiB fills up with the log, --sync=" + mode,
                faults.full_of_log, "ext4", SEED, mode, 24 * MIB)


def add_faults(numbers, modes):
    """Each fault at these of its calls."""
    for call, action, error in faults.FAULTS:
        for mode in modes:
            tap.add("--sync=%s: %s of %s with %s, once" % (
                mode, action, call, errno.errorcode[error]),
                run_faults, mode, (call, action, error), numbers)


def run_faults(mode, fault, numbers):
    all_of((faults.one_fault, SEED + number, mode, fault, number)
           for number in numbers)


OUTAGES = (
    (("write", "allocate"), errno.ENOSPC),
    (("write",), errno.EIO),
    (("sync",), errno.EIO),
    (("sync", "write", "open", "allocate", "rename"), errno.EIO),
)


def add_outages(modes):
    endings = ("stop", "kill", "kill meanwhile")
    for (calls, error), mode, ending in some(
            itertools.product(OUTAGES, modes, endings)):
        tap.add("--sync=%s: %s fail with %s for a while, then %s" % (
            mode, ", ".join(calls), errno.errorcode[error], ending),
            faults.long_fault, SEED, mode, calls, error, ending)
    for mode in modes:
        for ending in ("stop", "kill"):
            tap.add("--sync=%s: files may not grow for a while, then %s" % (
                mode, ending), faults.file_limit, SEED, mode, ending)


def add_starts(most):
    for call in ("open", "write", "sync", "allocate", "rename", "truncate"):
        tap.add("the n-th %s of a start fails" % call, run_starts, call, most)


def run_starts(call, most):
    number = 1
    while number <= most and faults.failing_start(
            SEED + number, call, errno.EIO, number):
        tell("%s number %d of a start" % (call, number))
        number += 1
    tap.note("%d calls" % (number - 1))


def add_damage(each):
    for end, sync in damage.ENDS:
        tap.add("bits flip and ends are cut off after %s, --sync=%s" % (
            end, sync), run_damage, each, end, sync)


def run_damage(each, end, sync):
    count, refused = damage.damages(SEED, each, end, sync, tell=tell)
    tap.note("%d damages, %d refused" % (count, refused))


WRITERS = (
    ("one by one", (order.plain,), 1),
    ("pipelined", (order.pipelined,), 1),
    ("noreply, then a get", (order.quiet,), 1),
    ("two workers, four clients",
     (order.plain, order.pipelined, order.plain, order.quiet), 2),
)


def add_order():
    for name, functions, threads in WRITERS:
        tap.add("no reply before its sync: %s" % name, run_order, functions,
                threads)


def run_order(functions, threads):
    looked_at = order.trace(functions, threads)
    tap.note("%d replies" % looked_at)
    tap.check(looked_at > 0, "no reply was looked at")


def add_late():
    for mode in ("always", "interval"):
        tap.add("--sync=%s: a sync hangs, changes are answered all the same"
                % mode, run_late, mode)


def run_late(mode):
    tap.note("%d changes were late" % late.late(mode))


def add_slow():
    tap.add("--sync=interval: writes are held up, reads go on", run_slow)


def run_slow():
    tap.note("%d gets beside a write" % slow.slow())


def add_histories(count):
    for first in range(0, count, HISTORIES_CHUNK):
        part = min(HISTORIES_CHUNK, count - first)
        tap.add("%d histories with kills can be explained, from the %d-th on"
                % (part, first + 1), run_histories, SEED + first, part)


def run_histories(first, count):
    made = kills = 0
    for number, one in enumerate(history_batch.histories(
            first, count, JOBS, history_batch.Settings()), 1):
        tell("history %d of %d" % (number, count))
        tap.check(one.wrong is None, "seed %d, %s: %s" % (
            one.seed, one.path, one.wrong))
        made, kills = made + one.operations, kills + one.kills
    tap.note("%d operations, %d kills" % (made, kills))


def run():
    note_seed()
    if server.SANITIZER:
        tap.note("with %s: fewer" % server.SANITIZER)
    tap.run()


def add_likes(count):
    """count lives."""
    tap.add("fifty connections that like and unlike the same %d pairs, kill "
            "-9, retries, %d lives: a number is its members" % (
                len(likes.POSTS) * len(likes.USERS), count),
            run_likes, count)


def run_likes(count):
    note_seed()
    tap.note("%d commands, %d members at the end" % likes.lives(
        count, SEED, tell=tell))


def add_cold_likes(count, minutes=0):
    """count lives; where that is 0, as many as begin in these minutes."""
    tap.add("fifty connections that like and unlike the same %d pairs over "
            "segments, seals, kill -9, retries, %s: a number is its members" % (
                len(likes.POSTS) * len(likes.USERS),
                "%d lives" % count if count else "%g minutes" % minutes),
            run_cold_likes, count, minutes)


def run_cold_likes(count, minutes):
    note_seed()
    tap.note("%d lives, %d commands, %d members at the end, %d seals" % (
        cold_likes.lives(count, minutes, SEED, tell=tell)))


def add_devices(count):
    """count rounds."""
    tap.add("two devices, answers that are lost, commands that come twice and "
            "late, %d rounds" % count, run_devices, count)


def run_devices(count):
    note_seed()
    tap.note("%d events, %d answers lost, %d commands repeated" % (
        devices.rounds(count, SEED, tell=tell)))


def add_reads(count):
    for calls in (reads.WRITES, reads.SYNCS):
        tap.add("--reads=committed: %s hangs, nothing is shown"
                % calls.split(",")[0], run_committed, calls)
    tap.add("--reads=latest: a kill takes back what was read", run_latest)
    tap.add("--sync=interval --reads=committed: a sync is not waited for",
            run_interval)
    for what in ("committed", "latest"):
        tap.add("--reads=%s: kill -9 beside readers, %d lives"
                % (what, count), run_read_lives, what, count)


def run_committed(calls):
    come, _ = reads.held("committed", calls)
    tap.equal(come, [], "shown")


def run_latest():
    come, found = reads.held("latest", reads.WRITES)
    tap.equal(come, [form[0] for form in reads.FORMS], "answered")
    tap.equal(found, 0, "what was 1")


def run_interval():
    come, found = reads.held("committed", reads.SYNCS, sync="interval")
    tap.equal(come, [form[0] for form in reads.FORMS], "answered")
    tap.equal(found, 1, "what was 1")


def run_read_lives(what, count):
    n_reads, n_taken = reads.lives(what, count, SEED)
    tap.note("%d reads, taken back in %d of %d lives" % (
        n_reads, n_taken, count))
    if what == "committed":
        tap.equal(n_taken, 0, "lives that took back what was read")


REPLICA_ROUNDS = 100  # of a test
AWAY_S = 60
CUT_OFF = 10


def add_rounds(count, has_root):
    """count rounds; has_root: with networks and disks that fail."""
    modes = ("interval", "always")
    for mode in modes:
        left = max(1, count // len(modes))
        part = 0
        while left > 0:
            now = min(left, REPLICA_ROUNDS)
            tap.add("three nodes%s, --sync=%s: %d rounds%s" % (
                " on three machines" if has_root else "", mode, now,
                ", part %d" % part if part else ""),
                run_replicas, now, SEED + part, has_root, mode)
            left -= now
            part += 1


def add_replicas(count, away_s=AWAY_S, cut_off=CUT_OFF):
    """What needs no root."""
    add_rounds(count, False)
    for harm in ("kill", "stop"):
        tap.add("a replica is away for %g s (%s): no snapshot" % (
            away_s, harm), run_away, away_s, harm)
    for how in replicas.DISK_FAULTS:
        tap.add("the disk of the primary is %s for a while" % how,
                run_disk_fails, how)
    tap.add("a replica has sealed what its primary has not",
            replicas.sealed_apart)
    tap.add("a replica whose log is gone: a snapshot, cut off %d times"
            % cut_off, run_behind, cut_off)


def add_node_points(count):
    """Calls of each scene of node_points.py at which a node ends; 0: all."""
    for title, kind in node_points.SCENES.items():
        if count > 0:
            tap.add("%s: ended at %d calls" % (title, count),
                    run_some_node_points, kind, count)
            continue
        for way in points.WAYS:
            tap.add("%s: %s every call" % (title, way),
                    run_all_node_points, kind, way)
    for kind in (node_points.Stale, node_points.Cut):
        tap.add("%s: strace and the preloaded library count the same calls"
                % kind.__name__.lower(), run_same_node_count, kind)


@contextlib.contextmanager
def scene_of(kind):
    scene = kind(SEED)
    try:
        yield scene
    finally:
        scene.remove()


def run_some_node_points(kind, count):
    note_seed()
    with scene_of(kind) as scene:
        met, counts = node_points.some_points(
            scene, random.Random("%s %d" % (kind.__name__, SEED)), count)
    tap.note("%d of %d were met; calls: %s" % (met, count, counts))
    tap.check(met > 0, "no point was met")


def run_all_node_points(kind, way):
    note_seed()
    with scene_of(kind) as scene:
        tap.note("%d calls" % node_points.all_points(scene, way, tell))


def run_same_node_count(kind):
    with scene_of(kind) as scene:
        shim, strace = node_points.same_count(scene)
    for call, number in strace.items():
        tap.equal(shim[call], number, call)


def add_machines(count):
    """What does."""
    add_rounds(count, True)
    tap.add("the disk of a replica is full for a while",
            replicas.full_replica)
    tap.add("the primary loses the end of its log: its replicas are cut",
            run_lost_tail, max(2, count // 50))


def run_replicas(count, seed, has_root, mode):
    note_seed()
    kind = ("xfs", "ext4")[seed % 2]
    acked, counts = replicas.rounds(count, seed, has_root, kind, mode,
                                    tell=tell)
    tap.note("%d changes acknowledged, %s" % (acked, ", ".join(
        "%d of %s" % (number, what)
        for what, number in sorted(counts.items()))))


def run_away(seconds, harm):
    changes, before, after = replicas.away(seconds, harm, tell=tell)
    tap.note("%d changes meanwhile; the primary had %d, then %d KiB" % (
        changes, before, after))


def run_disk_fails(how):
    note_seed()
    replicas.disk_fails(SEED, how)


def run_behind(cut_off):
    tap.note("%d bytes of snapshots" % replicas.behind(cut_off, tell=tell))


def run_lost_tail(count):
    note_seed()
    replicas.lost_tail(count, SEED, tell=tell)


def add_reshards(count):
    """count moves of ids to another group, of each rule in turn."""
    for number in range(count):
        rule = reshard.RULES[number % len(reshard.RULES)]
        tap.add("ids move to another group, by %s, number %d" % (
            rule, number + 1), run_reshard, SEED + number, rule)


def add_reshard_harness():
    """Ids that are moved by hand, well, and with something left out."""
    tap.add("ids move to another group by hand", run_by_hand, None)
    for name, what in reshard_by_hand.LEFT_OUT.items():
        tap.add("ids move without " + what, run_by_hand, name)


def run_by_hand(leaves_out):
    """What is left out may do no harm once."""
    note_seed()
    for number in range(BY_HAND_TRIES if leaves_out else 1):
        try:
            tap.note(reshard.round_of(
                SEED + number, mover=lambda world: reshard_by_hand.ByHand(
                    world, reshard.NAMES, leaves_out)))
        except oracle.Lost as error:
            if leaves_out:
                tap.note(str(error)[:300])
                return
            raise
    tap.check(not leaves_out, "it was not seen")


def run_reshard(seed, rule):
    tap.note("SEED=%d" % seed)
    acked, runs, refused_s, log = reshard.round_of(seed, rule)
    tap.note("%d changes acknowledged, %d runs of tallyctl, refused for %.3f s "
             "at most; %s" % (acked, runs, refused_s, ", ".join(log)))


FAILOVER_ROUNDS = 25  # of a test
ETCD_ROUNDS = 10      # of a minute each: more would fill the lanes
ROOT_KINDS = ("partition", *failover.DISK_KINDS)
# Of 6.20 in the specification; on demand, of each kind so many.
FAILOVERS = {"partition": 200, "kill": 300, "stop": 100, "etcd": 30,
             "double": 100, "switch": 30, "candidate": 100, "clock": 20,
             "lost": 30, "power": 100, "disk": 30}
OUTAGE_S = 60


def add_failovers(counts, has_root, outage_s=OUTAGE_S):
    """counts: {kind: rounds}; has_root: each on a machine of its own."""
    for kind, count in counts.items():
        part = 0
        if kind == "clock" and not failover.faketime():
            continue
        while count > 0 and (has_root or kind not in ROOT_KINDS):
            now = min(count,
                      ETCD_ROUNDS if kind == "etcd" else FAILOVER_ROUNDS)
            tap.add("a group that decides by itself who leads%s: %d rounds of "
                    "%s%s" % (" on machines of its own" if has_root else "",
                              now, kind, ", part %d" % part if part else ""),
                    run_failovers, now, SEED + part, has_root, kind,
                    outage_s)
            count -= now
            part += 1


def add_any_failovers(count, has_root, outage_s):
    """count rounds of any kind, by seed."""
    tap.add("a group that decides by itself who leads%s: %d rounds" % (
        " on machines of its own" if has_root else "", count),
        run_failovers, count, SEED, has_root, None, outage_s)


def run_failovers(count, seed, has_root, kind, outage_s):
    note_seed()
    world = failover.rounds(count, seed, has_root, kind, outage_s, tell=tell)
    tap.note(world.report())
