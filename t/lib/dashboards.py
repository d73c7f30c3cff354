# SPDX-License-Identifier: BSD-3-Clause
"""What is asked of a dashboard of Grafana and of the files by which Grafana
finds it, as far as it can be seen without Grafana. Each wrong_... function
returns a list of what is wrong."""

import os
import re

KEYS = {"title", "uid", "tags", "schemaVersion", "editable", "refresh", "time",
        "templating", "panels"}
PANEL_KEYS = {"id", "title", "type", "datasource", "gridPos", "fieldConfig",
              "targets"}
# Units of Grafana: identifiers of its list of value formats.
UNITS = {"short", "none", "ops", "s", "bytes", "Bps", "percentunit"}
COLUMNS = 24
# Of Grafana itself, so that no list has them.
BUILT_IN = {"__rate_interval"}
VARIABLE = re.compile(r"\$\{?(\w+)\}?")
SELECTOR = re.compile(r"\b(?:tallyd|memcached)_\w+(?:\{([^}]*)\})?")
LABEL_VALUES = re.compile(r"label_values\((\w+), \w+\)")
OF_INSTANCES = 'instance=~"$instance"'


def variables(document):
    return {one["name"]: one for one in document["templating"]["list"]}


def expressions(document):
    """[(panel's title, expression, legend)]"""
    return [(panel["title"], target["expr"], target["legendFormat"])
            for panel in document["panels"] for target in panel["targets"]]


def as_promql(expression):
    """As Grafana sends it: variables replaced by what they may stand for."""
    return expression.replace("$__rate_interval", "1m").replace(
        "$instance", "a:80|b:80")


def sources_of(known):
    return sorted(
        name for name, one in known.items()
        if one["type"] == "datasource" and one["query"] == "prometheus")


def wrong_variables(document, metrics):
    wrong, known = [], variables(document)
    sources = sources_of(known)
    for name, one in known.items():
        if one["type"] == "query" and VARIABLE.findall(
                one["datasource"]["uid"]) != sources:
            wrong.append("variable %s: of which source?" % name)
        elif one["type"] == "query" and not set(LABEL_VALUES.findall(
                one["query"]["query"])) & metrics:
            wrong.append("variable %s: of which metric?" % name)
        elif one["type"] not in ("query", "datasource"):
            wrong.append("variable %s: its type" % name)
    if len(known) != len(document["templating"]["list"]) or len(sources) != 1:
        wrong.append("variables: one source, each name once")
    return wrong


def wrong_place(panel, taken):
    """Within the width, and over no other panel."""
    place = panel["gridPos"]
    cells = {(x, y) for x in range(place["x"], place["x"] + place["w"])
             for y in range(place["y"], place["y"] + place["h"])}
    wrong = []
    if not cells or min(place["x"], place["y"]) < 0 or \
            place["x"] + place["w"] > COLUMNS:
        wrong.append("%s: beside the page" % panel["title"])
    if cells & taken:
        wrong.append("%s: over another panel" % panel["title"])
    taken |= cells
    return wrong


def wrong_target(panel, target, known):
    wrong = []
    used = set(VARIABLE.findall(target["expr"])) - BUILT_IN
    if not used <= set(known):
        wrong.append("%s: no variable %s" % (panel["title"],
                                             sorted(used - set(known))))
    chosen = SELECTOR.findall(target["expr"])
    if not chosen or not all(OF_INSTANCES in one for one in chosen):
        wrong.append("%s: of every instance: %s" % (panel["title"],
                                                    target["expr"]))
    source = target["datasource"]
    if source != panel["datasource"] or source["type"] != "prometheus" or \
            VARIABLE.findall(source["uid"]) != sources_of(known):
        wrong.append("%s: of which source?" % panel["title"])
    return wrong


def wrong_panel(panel, known, taken):
    if set(panel) != PANEL_KEYS or panel["type"] != "timeseries":
        return ["%s: its keys, or its type" % panel.get("title")]
    wrong = wrong_place(panel, taken)
    if panel["fieldConfig"]["defaults"]["unit"] not in UNITS:
        wrong.append("%s: its unit" % panel["title"])
    names = [target["refId"] for target in panel["targets"]]
    if not names or len(set(names)) != len(names):
        wrong.append("%s: targets, each by a name" % panel["title"])
    for target in panel["targets"]:
        wrong += wrong_target(panel, target, known)
    return wrong


def wrong_dashboard(document, metrics):
    """A dashboard, parsed; metrics: the names that there are."""
    if set(document) != KEYS:
        return ["its keys: %s" % sorted(set(document) ^ KEYS)]
    wrong, taken = wrong_variables(document, metrics), set()
    for panel in document["panels"]:
        wrong += wrong_panel(panel, variables(document), taken)
    for key in "id", "title":
        found = [panel.get(key) for panel in document["panels"]]
        if len(set(found)) != len(found):
            wrong.append("two panels have one %s" % key)
    return wrong


def mounted(service, folder):
    """{path in the container: file of the tree}"""
    found = {}
    for volume in service["volumes"]:
        source, target = volume.split(":")[:2]
        if source.startswith("."):
            found[target] = os.path.normpath(os.path.join(folder, source))
    return found


def wrong_provision(source, boards, document, folder):
    """source, boards: Grafana's two files, parsed; document: the compose file;
    folder: where that lies."""
    services, wrong = document["services"], []
    files = mounted(services["grafana"], folder)
    for what in "datasources", "dashboards":
        if not any(os.path.dirname(path) == "/etc/grafana/provisioning/" + what
                   and path.endswith(".yml") for path in files):
            wrong.append("no file in " + what)
    if (source["apiVersion"], boards["apiVersion"]) != (1, 1):
        wrong.append("apiVersion")
    found = [one for one in source["datasources"]
             if one["type"] == "prometheus" and one.get("isDefault")]
    if len(found) != 1:
        return wrong + ["one Prometheus is what a dashboard begins with"]
    host, _, port = found[0]["url"].rpartition("/")[2].partition(":")
    if found[0]["access"] != "proxy" or host not in services or \
            port != "9090" or host not in services["grafana"]["depends_on"]:
        wrong.append("no service at " + found[0]["url"])
    for one in boards["providers"]:
        path = one["options"]["path"]
        if one["type"] != "file" or not any(
                os.path.dirname(target) == path and target.endswith(".json")
                for target in files):
            wrong.append("no dashboard in " + path)
    return wrong
