# SPDX-License-Identifier: BSD-3-Clause
"""What a server tells by HTTP: requests as a client makes them, and metrics
read by the rules of the form that they have."""

import http.client
import json
import re

import server
import tap

OPEN_METRICS = "application/openmetrics-text; version=1.0.0"

SAMPLE = re.compile(
    r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-z_]+=\"[^\"\\]*\",?)+)\})? "
    r"(-?[0-9.]+(?:e[+-]?[0-9]+)?)")

SUFFIXES = {"counter": ("_total",), "gauge": ("",),
            "histogram": ("_bucket", "_count", "_sum"),
            "summary": ("", "_count", "_sum")}


def need():
    """Some builds have no HTTP."""
    if "--http=" not in server.run("--help")[1]:
        raise tap.Skip("a build without libmicrohttpd")


def ask(port, path, method="GET", headers=None, body=None):
    """(status, headers, text)"""
    connection = http.client.HTTPConnection(
        "127.0.0.1", port, timeout=server.LIMIT_S)
    try:
        connection.request(method, path, body=body, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()
    finally:
        connection.close()


def status_of(port):
    """/status.json"""
    status, _, text = ask(port, "/status.json")
    if status != 200:
        raise AssertionError("/status.json: %d %r" % (status, text))
    return json.loads(text)


def metrics_of(port):
    """({name and labels: number}, {name: type}) of OpenMetrics, each line of
    which must be in the form."""
    status, headers, text = ask(
        port, "/metrics", headers={"Accept": OPEN_METRICS})
    if status != 200 or not headers["Content-Type"].startswith(
            "application/openmetrics-text; version=1.0.0"):
        raise AssertionError("/metrics: %d %r" % (status, headers))
    lines = text.split("\n")
    if lines[-2:] != ["# EOF", ""]:
        raise AssertionError("no # EOF at the end: %r" % lines[-3:])
    return parse(lines[:-2])


def parse(lines):
    samples, types = {}, {}
    family = None
    for line in lines:
        words = line.split(" ", 3)
        if line.startswith("# HELP "):
            family = words[2]
            if family in types or len(words) < 4:
                raise AssertionError("said twice, or no help: %r" % line)
        elif line.startswith("# TYPE "):
            if words[2] != family or words[3] not in SUFFIXES:
                raise AssertionError("not behind its HELP: %r" % line)
            types[family] = words[3]
        else:
            sample(line, family, types, samples)
    return samples, types


def sample(line, family, types, samples):
    found = SAMPLE.fullmatch(line)
    if not found:
        raise AssertionError("not in the form: %r" % line)
    name = found.group(1)
    if name not in [family + suffix for suffix in SUFFIXES[types[family]]]:
        raise AssertionError("%r is not of %s" % (line, family))
    key = "%s{%s}" % (name, found.group(2) or "")
    if key in samples:
        raise AssertionError("said twice: %r" % line)
    samples[key] = float(found.group(3))
