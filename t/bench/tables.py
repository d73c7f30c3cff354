# SPDX-License-Identifier: BSD-3-Clause
"""The results of t/bench/run in Markdown; see contest.py for their form."""

import figures
import rows
from contest import median_of, ratios
from rows import FLOOR, MEMCACHED, REDIS, TALLYD, TITLES

# Above this share of its core the client sets the pace, not the server.
CLIENT_BUSY = 0.95
SERVER_BUSY = 0.95

# Where neither side gets that much of its core, something else had it.
EITHER_BUSY = 0.80

LAG = 0.25  # of the 99th percentile: the generator's own, at most

NOTES = (
    (" *", "\\* The client was the slower side: commands/s and latency are "
     "its own, server CPU is not."),
    (" +", "\\+ Neither side had its core to itself: the machine was busy "
     "with something else, or, with sync always, both waited for the disk."),
    (" ~", "\\~ The load generator itself was late: these latencies are too "
     "long."),
)


def size_text(records):
    """10^6 where it is a power of ten, else the number."""
    text = "%d" % records
    if text.strip("0") == "1":
        return "10^%d" % (len(text) - 1)
    return text


def us(value):
    return "%.3f" % value if value < 1 else "%.2f" % value


def mark(results):
    """What limits the rates of a row other than the server."""
    client = median_of(results, "client_cpu")
    own = median_of(results, "server_cpu")
    if max(client, own) < EITHER_BUSY:
        return " +"
    return " *" if client > CLIENT_BUSY and own < SERVER_BUSY else ""


def with_notes(text):
    """A table, and below it what its marks mean."""
    lines = [note for sign, note in NOTES if sign + " |" in text]
    return "\n\n".join([text, *lines])


class Row:
    """The results of one row at one size, by server."""

    def __init__(self, contest, row, records):
        self.row = row
        self.records = records
        self.by_server = {
            name: contest.pick(part="rows", records=records, row=row.name,
                               server=name) for name in rows.SERVERS}
        self.field = "server_us_per_key" if rows.keys_of(row) > 1 \
            else "server_us_per_op"

    def __bool__(self):
        return any(self.by_server.values())

    def title(self):
        return self.row.name + \
            (", a key" if self.field == "server_us_per_key" else "")

    def cpu(self, name):
        found = self.by_server[name]
        return us(median_of(found, self.field)) if found else "-"

    def all_ratios(self, over, under):
        return ratios(self.by_server[over], self.by_server[under], self.field)

    def ratio(self, over, under):
        found = self.all_ratios(over, under)
        return figures.spread(found) if found else "-"

    def aim(self):
        """What the ratio to the floor is to be, and whether it is."""
        aim = rows.aim_of(self.row, self.records)
        if aim is None:
            return "-"
        found = self.all_ratios(TALLYD, FLOOR)
        if not found:
            return "%.2f" % aim
        met = figures.statistics.median(found) <= aim
        return "%.2f, %s" % (aim, "met" if met else "missed")


def table_rows(contest, records, names=None):
    found = [Row(contest, row, records) for row in rows.ROWS
             if names is None or row.name in names]
    return [row for row in found if row]


def cpu_table(contest, records):
    """Server CPU time, and the ratios within each round."""
    head = ["server CPU, us; %s records" % size_text(records), "floor",
            "tallyd", "tallyd / floor", "aim", "memcached", "Redis",
            "memcached / tallyd", "Redis / tallyd"]
    lines = [[row.title(), row.cpu(FLOOR), row.cpu(TALLYD),
              row.ratio(TALLYD, FLOOR), row.aim(), row.cpu(MEMCACHED),
              row.cpu(REDIS), row.ratio(MEMCACHED, TALLYD),
              row.ratio(REDIS, TALLYD)]
             for row in table_rows(contest, records)]
    return figures.table(head, lines)


def rate_table(contest, records):
    """Closed loop: commands a second and latency."""
    names = [name for name in rows.SERVERS
             if contest.pick(part="rows", records=records, server=name)]
    head = ["closed loop; %s records" % size_text(records)]
    head += ["%s, commands/s" % TITLES[name] for name in names]
    head += ["%s, p50 / p99 us" % TITLES[name] for name in names]
    lines = []
    for row in table_rows(contest, records):
        line = [row.row.name]
        for name in names:
            found = row.by_server[name]
            line.append("%.0f%s" % (median_of(found, "ops_per_s"),
                                    mark(found)) if found else "-")
        for name in names:
            found = row.by_server[name]
            line.append("%.0f / %.0f" % (
                median_of(found, "p50_us"), median_of(found, "p99_us"))
                if found else "-")
        lines.append(line)
    return with_notes(figures.table(head, lines))


def latency_cell(found):
    if not found:
        return "-"
    lag = median_of(found, "lag_p99_us") / median_of(found, "p99_us")
    return " / ".join("%.0f" % median_of(found, field) for field in
                      ("p50_us", "p99_us", "p999_us")) + \
        (" ~" if lag > LAG else "")


def latency_table(contest):
    """Open loop: percentiles at rates that are the same for all."""
    found = contest.pick(part="latency")
    names = [name for name in rows.SERVERS
             if any(one["server"] == name for one in found)]
    head = ["%s, commands/s" % rows.LATENCY_ROW.name]
    head += ["%s, p50 / p99 / p99.9 us" % TITLES[name] for name in names]
    lines = []
    for rate in sorted({one["rate"] for one in found}):
        lines.append(["%d" % rate] + [
            latency_cell(contest.pick(part="latency", rate=rate, server=name))
            for name in names])
    return with_notes(figures.table(head, lines))


def growth_table(contest):
    """Gets at half load beside growth and checkpoints."""
    lines = []
    for one in contest.pick(part="growth"):
        lines.append([
            "%s, %s" % (one["row"], one["what"]), "%d" % one["rate"],
            *("%.0f" % one[field] for field in
              ("p50_us", "p99_us", "p999_us", "p9999_us", "max_us")),
            "%d" % one.get("stored", 0), "%d" % one.get("checkpoints", 0)])
    return figures.table(
        ["tallyd at half load, sync interval", "commands/s", "p50 us",
         "p99 us", "p99.9 us", "p99.99 us (aim: below 10000)", "longest us",
         "posts stored meanwhile", "checkpoints"], lines)


def worker_table(contest):
    """Server CPU time with one worker and with two."""
    lines = []
    for row in rows.WORKER_ROWS:
        one, two = (contest.pick(part="workers", row=row.name, workers=count)
                    for count in (1, 2))
        if one and two:
            lines.append([row.name,
                          us(median_of(one, "server_us_per_op")),
                          us(median_of(two, "server_us_per_op")),
                          figures.spread(ratios(two, one))])
    return figures.table(
        ["tallyd, server CPU us a command", "1 worker", "2 workers",
         "2 / 1 (aim: at most 1.10)"], lines)


def memory_table(contest):
    """Growth of resident memory while filling, by record."""
    lines = []
    for one in contest.pick(part="fill"):
        if one["what"] not in ("tallyd, memory", "memcached", "Redis"):
            continue
        grown = one["rss_after"] - one["rss_before"]
        lines.append([TITLES[one["server"]], size_text(one["records"]),
                      "%d" % one["ops"], "%.1f" % (grown / 1e6),
                      "%.1f" % (grown / one["records"])])
    return figures.table(
        ["memory", "records", "stores", "RSS growth, MB", "bytes a record"],
        lines)


def head_of(contest):
    arguments = contest.arguments
    text = "Machine: %s.\nServers: %s.\n%d connections, %d round(s) of %g " \
        "s a row and server; medians, in brackets the range." % (
            contest.machine,
            ", ".join(filter(None, contest.versions.values())),
            arguments.connections, arguments.rounds, arguments.seconds)
    if contest.cores.server_cpu is None:
        text += "\nOne CPU only: servers and client shared it."
    if not contest.is_whole:
        text += "\nThe run ended early: not all is there."
    if arguments.quick:
        text += "\nA quick run: these figures mean nothing."
    return text


def report(contest, pictures):
    """The whole result; pictures has the file name of each plot drawn."""
    parts = [head_of(contest)]

    def picture(name, text):
        if name in pictures:
            parts.append("![%s](%s)" % (text, pictures[name]))
    picture("cpu", "server CPU time, times the floor's")
    sizes = [records for records in contest.arguments.records
             if contest.pick(part="rows", records=records)]
    parts += [cpu_table(contest, records) for records in sizes]
    picture("rate", "commands a second in a closed loop")
    parts += [rate_table(contest, records) for records in sizes]
    picture("latency", "latency against load")
    for part, make in (("latency", latency_table), ("growth", growth_table),
                       ("workers", worker_table), ("fill", memory_table)):
        if contest.pick(part=part):
            parts.append(make(contest))
    picture("memory", "memory a record")
    return "\n\n".join(parts) + "\n"


def readme(contest, picture):
    """The few rows and the plot for the README."""
    records = contest.arguments.main
    head = ["server CPU, us; %s records" % size_text(records), "floor",
            "tallyd", "tallyd / floor", "memcached / tallyd",
            "Redis / tallyd"]
    lines = [[row.title(), row.cpu(FLOOR), row.cpu(TALLYD),
              row.ratio(TALLYD, FLOOR), row.ratio(MEMCACHED, TALLYD),
              row.ratio(REDIS, TALLYD)]
             for row in table_rows(contest, records, rows.SHOWN)]
    text = "On %s:\n\n%s\n" % (contest.machine, figures.table(head, lines))
    if picture:
        text += "\n![server CPU time, times the floor's](%s)\n" % picture
    return text
