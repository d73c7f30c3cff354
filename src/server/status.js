// SPDX-License-Identifier: BSD-3-Clause
// The status page: asks /status.json every POLL_MS and draws what has come
// since the page was opened. Rates are differences of two answers by the
// server's clock; where a figure has become less it was set back, and that
// step is left out.
"use strict";

const POLL_MS = 2000;
const LIMIT_MS = 10000; // an answer that takes longer does not come
const POINTS = 150;     // of POLL_MS: five minutes
const POINTS_LEAST = 30; // what is drawn has room for so many at least
const MAP_FIRST = 5;    // heat maps begin at 2^5 us
const MAP_ROWS = 20;

// What is drawn as a rate: label, group, figures that are added up.
const RATES = [
  ["counters read", "counters", ["cell_gets"]],
  ["counters changed", "counters", ["cell_changes"]],
  ["get", "general", ["cmd_get"]],
  ["set", "general", ["cmd_set"]],
  ["incr, decr", "general",
    ["incr_hits", "incr_misses", "decr_hits", "decr_misses"]],
  ["delete", "general", ["delete_hits", "delete_misses"]],
  ["touch", "general", ["cmd_touch"]],
  ["meta", "general", ["cmd_meta"]],
];

// Histograms: label, group, what the names begin with. Of requests those of all
// paths are added up.
const MAPS = [
  ...["get", "set", "incr", "decr", "delete", "touch", "other"].map(
    (verb) => [verb, "buckets", new RegExp(`^${verb}:[a-z]+:us_below_`)]),
  ["syncs of the log", "wal", "sync_us_below_"],
  ["changes, until they are synced", "wal", "synced_us_below_"],
  ["reads of the cold tier", "cold", "read_us_below_"],
  ["commits by replicas", "replication", "commit_us_below_"],
];

const MEMORY = [
  ["counters", "hot"], ["items", "items"], ["requests", "requests"],
  ["log, not synced", "log"], ["cold cache", "cold_cache"],
  ["cold maps", "cold_maps"], ["sorted members", "sorted"],
];

const points = []; // answers, the oldest first
const byId = (id) => document.getElementById(id);

function make(name, text, className) {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

function drawing(name, attributes) {
  const element =
    document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) {
    element.setAttribute(key, value);
  }
  return element;
}

function count(n) {
  if (typeof n !== "number" || !isFinite(n)) return "–";
  for (const [size, unit] of [[1e12, " T"], [1e9, " G"], [1e6, " M"],
    [1e3, " k"]]) {
    if (n >= 10 * size || (n >= size && size > 1e3)) {
      return (n / size).toPrecision(3) + unit;
    }
  }
  return n >= 100 || Number.isInteger(n) ? n.toFixed(0) : n.toPrecision(2);
}

function bytes(n) {
  if (typeof n !== "number") return "–";
  for (const [power, unit] of [[4, " TiB"], [3, " GiB"], [2, " MiB"],
    [1, " KiB"]]) {
    if (n >= 1024 ** power) return (n / 1024 ** power).toPrecision(3) + unit;
  }
  return n + " B";
}

function time(ms) {
  if (typeof ms !== "number") return "–";
  const s = ms / 1000;
  if (s < 1) return Math.round(ms) + " ms";
  if (s < 120) return s.toFixed(s < 10 ? 1 : 0) + " s";
  if (s < 7200) return Math.round(s / 60) + " min";
  return s < 172800 ? Math.round(s / 3600) + " h"
    : Math.round(s / 86400) + " d";
}

// A figure; undefined where there is none.
const figure = (point, group, name) => (point.stats[group] || {})[name];

const sum = (point, group, names) => names.reduce(
  (all, name) => all + (figure(point, group, name) || 0), 0);

// How much more a second; undefined: not known.
function rate(from, to, group, names) {
  const s = (to.unix_ms - from.unix_ms) / 1000;
  const more = sum(to, group, names) - sum(from, group, names);
  return s > 0 && more >= 0 ? more / s : undefined;
}

function latest(group, names) {
  const n = points.length;
  return n < 2 ? undefined : rate(points[n - 2], points[n - 1], group, names);
}

// How many points there is room for in a drawing.
const width = () => Math.max(POINTS_LEAST, points.length);

// ---- the parts ----

function showState(now) {
  const state = byId("state");
  const general = now.stats.general;
  state.textContent = now.state +
    (now.percent === undefined ? "" : ` ${now.percent} %`);
  state.className = "state " +
    (now.state === "ready" ? "is-ready" : "is-bad");
  byId("version").textContent = now.version;
  const node = figure(now, "replication", "node");
  byId("about").textContent =
    (node === undefined ? "" : `${node}, ` +
      `${figure(now, "replication", "role")}; `) +
    (general.uptime === undefined ? "" : `up ${time(general.uptime * 1000)}`);
  document.title = `${now.state} – tallyd`;
}

function showProblems(now) {
  const place = byId("problems");
  place.replaceChildren(...now.problems.map((problem) => {
    const line = make("p", undefined, "problem");
    line.append(make("b", problem.what), problem.do);
    return line;
  }));
  place.hidden = now.problems.length === 0;
}

function showTiles(now) {
  const memory = now.stats.memory;
  const full = memory.hot_limit > 0
    ? `${(100 * memory.hot_used / memory.hot_limit).toFixed(1)} %` : "–";
  const records = Object.entries(now.stats.counters)
    .filter(([name]) => name.endsWith(":records"))
    .reduce((all, [, n]) => all + n, 0);
  const tiles = [
    [count(latest("counters", ["cell_gets"])), "counters read a second"],
    [count(latest("counters", ["cell_changes"])), "changed a second"],
    [count(figure(now, "general", "curr_connections")), "connections"],
    [count(records), "records"],
    [full, "of the hot memory"],
    [bytes(memory.resident), "resident"],
  ];
  byId("tiles").replaceChildren(...tiles.map(([value, label]) => {
    const tile = make("div", undefined, "tile");
    tile.append(make("b", value), make("span", label));
    return tile;
  }));
}

function showRates() {
  const series = RATES.map(([label, group, names], i) => ({
    label, className: `c${i}`,
    values: points.slice(1).map(
      (to, at) => rate(points[at], to, group, names)),
  }));
  const used = series.filter((one) => one.values.some((value) => value > 0));
  const most = Math.max(1, ...used.flatMap(
    (one) => one.values.filter((value) => value !== undefined)));
  const x = (at) =>
    600 * (width() - 1 - (points.length - 2 - at)) / (width() - 1);
  byId("legend").replaceChildren(...used.map((one) => make("span",
    `${one.label} ${count(one.values[one.values.length - 1])}`,
    one.className)));
  byId("rates").replaceChildren(
    drawing("path", { class: "grid", d: "M0 5H600M0 80H600M0 155H600" }),
    ...used.map((one) => drawing("path", {
      class: one.className,
      d: one.values.map((value, at) => value === undefined ? "" :
        `${at === 0 || one.values[at - 1] === undefined ? "M" : "L"}` +
        `${x(at).toFixed(1)} ${(155 - 150 * value / most).toFixed(1)}`)
        .join(""),
    })));
  byId("rates-from").textContent = `${time(width() * POLL_MS)} ago`;
  byId("rates-most").textContent = `at the top: ${count(most)}`;
}

// The cells of a histogram in an answer, by power of two.
function cells(point, group, begin) {
  const found = new Map();
  for (const [name, n] of Object.entries(point.stats[group] || {})) {
    const is = typeof begin === "string"
      ? name.startsWith(begin) : begin.test(name);
    if (is) {
      const below = Number(name.slice(name.lastIndexOf("_") + 1));
      const row = Math.min(MAP_ROWS - 1,
        Math.max(0, Math.round(Math.log2(below)) - MAP_FIRST));
      found.set(row, (found.get(row) || 0) + n);
    }
  }
  return found;
}

function showMap([label, group, begin]) {
  const columns = points.map((point) => cells(point, group, begin));
  if (columns.every((column) => column.size === 0)) return undefined;
  const step = 600 / (width() - 1), height = 130 / MAP_ROWS;
  const grown = [];
  for (let at = 1; at < columns.length; at++) {
    for (const [row, n] of columns[at]) {
      const more = n - (columns[at - 1].get(row) || 0);
      if (more > 0) grown.push({ at, row, more });
    }
  }
  const most = Math.max(1, ...grown.map((one) => one.more));
  const svg = drawing("svg", {
    viewBox: "0 0 600 130", preserveAspectRatio: "none", role: "img",
    "aria-label": label,
  });
  svg.append(...grown.map(({ at, row, more }) => drawing("rect", {
    x: (600 - step * (columns.length - at)).toFixed(2),
    y: (130 - height * (row + 1)).toFixed(2),
    width: (step + 0.3).toFixed(2), height: height.toFixed(2),
    "fill-opacity": (0.15 + 0.85 * Math.log1p(more) /
      Math.log1p(most)).toFixed(2),
  })));
  const place = make("div");
  const low = time(2 ** MAP_FIRST / 1000);
  const high = time(2 ** (MAP_FIRST + MAP_ROWS) / 1000);
  const axis = make("p", undefined, "axis");
  axis.append(make("span", `from ${low === "0 ms" ? "32 µs" : low} below`),
    make("span", `to ${high} at the top`));
  place.append(make("h3", label), svg, axis);
  return place;
}

function showMaps() {
  const maps = MAPS.map(showMap).filter((map) => map !== undefined);
  byId("heat-maps").replaceChildren(...maps);
  byId("heat").hidden = maps.length === 0;
}

function showMemory(now) {
  const memory = now.stats.memory;
  byId("memory").replaceChildren(...MEMORY.filter(([, kind]) =>
    memory[`${kind}_used`] !== undefined || memory[kind] !== undefined)
    .map(([label, kind]) => {
      const used = memory[`${kind}_used`] ?? memory[kind];
      const limit = memory[`${kind}_limit`];
      const meter = make("div", undefined, "meter");
      const line = make("div");
      line.append(make("span", label), make("span", limit === undefined
        ? bytes(used) : `${bytes(used)} of ${bytes(limit)}`));
      meter.append(line);
      if (limit > 0) {
        const track = make("div", undefined, "track");
        const share = Math.min(1, used / limit);
        const fill = make("div", undefined,
          share > 0.9 ? "fill is-full" : "fill");
        fill.style.width = `${(100 * share).toFixed(1)}%`;
        track.append(fill);
        meter.append(track);
      }
      return meter;
    }));
}

// Lines of a name and a value; those without a value are left out.
function showTable(id, lines) {
  byId(id).replaceChildren(...lines
    .filter(([, value]) => value !== undefined && value !== "–")
    .map(([name, value]) => {
      const row = make("tr");
      row.append(make("td", name), make("td", value, "number"));
      return row;
    }));
}

// How long it will take; 0 where that is not known.
const left = (ms) => ms > 0 ? `, about ${time(ms)} left` : "";

function showTiers(now) {
  const cold = now.stats.cold;
  const hits = latest("cold", ["hits"]), lookups = latest("cold", ["lookups"]);
  showTable("tiers", [
    ["ranges of ids: hot, overlaid, written", cold.ranges_hot === undefined
      ? undefined : `${count(cold.ranges_hot)}, ` +
        `${count(cold.ranges_overlaid)}, ${count(cold.ranges_written)}`],
    ["cold records", count(cold.records)],
    ["cold files", cold.segments === undefined ? undefined
      : `${count(cold.segments)}, ${bytes(cold.bytes)}`],
    ["cold reads a second", count(latest("cold", ["reads"]))],
    ["of lookups, in the cache", lookups > 0
      ? `${(100 * hits / lookups).toFixed(0)} %` : "–"],
    ["seal all", !cold.seal_all_records ? undefined
      : `${cold.seal_percent} %, ${count(cold.seal_done_records)} of ` +
        `${count(cold.seal_all_records)} records${left(cold.seal_left_ms)}`],
    ["blocks that wait to be read", count(cold.queued)],
    ["calls that waited for room", count(cold.room_waits)],
    ["state", cold.state],
  ]);
}

function showLog(now) {
  const wal = now.stats.wal;
  const last = wal.last_checkpoint_time;
  showTable("log", [
    ["state", wal.state],
    ["sync", wal.sync],
    ["written a second", bytes(Math.round(latest("wal", ["bytes"]) || 0))],
    ["syncs a second", count(latest("wal", ["syncs"]))],
    ["not synced", wal.unsynced_bytes === undefined ? undefined
      : `${bytes(wal.unsynced_bytes)}, ${time(wal.unsynced_ms)}`],
    ["log files", bytes(wal.live_bytes)],
    ["last batch", wal.last_seq === undefined ? undefined
      : String(wal.last_seq)],
    ["last checkpoint", last > 0
      ? `${time(now.unix_ms - last * 1000)} ago` : undefined],
    ["checkpoint under way", !wal.checkpoint_all_records ? undefined
      : `${wal.checkpoint_percent} %${left(wal.checkpoint_left_ms)}`],
    ["failed syncs, checkpoints", wal.sync_failures === undefined ? undefined
      : `${wal.sync_failures}, ${wal.checkpoint_failures}`],
  ]);
}

function showConnections(now) {
  const general = now.stats.general;
  showTable("connections", [
    ["now, of at most", general.curr_connections === undefined ? undefined
      : `${general.curr_connections} of ${general.max_connections}`],
    ["accepted a second", count(latest("general", ["total_connections"]))],
    ["refused", count(general.rejected_connections)],
    ["logins that failed", count(general.auth_errors)],
    ["read a second", bytes(Math.round(
      latest("general", ["bytes_read"]) || 0))],
    ["written a second", bytes(Math.round(
      latest("general", ["bytes_written"]) || 0))],
  ]);
}

// "key=value key=value" as an object.
const pairs = (text) => Object.fromEntries(String(text).split(" ")
  .map((word) => [word.split("=", 1)[0], word.slice(word.indexOf("=") + 1)]));

function showList(id, names, rows) {
  const head = make("tr");
  head.append(...names.map((name, i) =>
    make("th", name, i > 0 ? "number" : "")));
  byId(id).replaceChildren(...rows.length === 0 ? [] : [head,
    ...rows.map((values) => {
      const row = make("tr");
      row.append(...values.map((value, i) =>
        make("td", value, i > 0 ? "number" : "")));
      return row;
    })]);
}

function showGroup(now) {
  const own = now.stats.replication;
  byId("group").hidden = own.role === undefined;
  const lag = (ms) => ms === undefined ? undefined
    : typeof ms === "number" ? time(ms) : ms;
  showTable("replication", [
    ["role", own.role], ["term", own.term === undefined
      ? undefined : String(own.term)],
    ["primary", own.primary_address], ["link", own.link_status],
    ["behind", lag(own.lag_ms)],
    ["committed batch", own.committed_seq === undefined ? undefined
      : String(own.committed_seq)],
    ["last batch", own.last_seq === undefined ? undefined
      : String(own.last_seq)],
    ["replicas, wanted", own.role === "primary"
      ? `${own.replicas}, ${own.semi_sync}` : undefined],
  ]);
  showList("replicas", ["replica", "state", "behind", "synced"],
    Object.entries(now.stats.replicas).map(([name, text]) => {
      const it = pairs(text);
      return [name, it.state || "",
        it.lag_ms === "unknown" ? "unknown" : time(Number(it.lag_ms)),
        it.synced || ""];
    }));
}

function showCounters(now) {
  const counters = now.stats.counters;
  showList("counters", ["counter", "records", "memory"],
    Object.keys(counters).filter((name) => name.endsWith(":records"))
      .map((name) => name.slice(0, -":records".length))
      .map((name) => [name, count(counters[`${name}:records`]),
        bytes(counters[`${name}:bytes`])]));
}

// Lists that some servers tell: of each entry the keys that are named.
function showEntries(place, id, group, keys, now) {
  const entries = Object.values(now.stats[group] || {})
    .filter((text) => String(text).includes("=")).map(pairs);
  byId(place).hidden = entries.length === 0;
  showList(id, keys, entries.map((one) => keys.map((key) => one[key] || "")));
}

function show(now) {
  showState(now);
  showProblems(now);
  if (now.stats.general.uptime === undefined) return; // nothing is there yet
  points.push(now);
  if (points.length > POINTS) points.shift();
  showTiles(now);
  showRates();
  showMaps();
  showMemory(now);
  showTiers(now);
  showLog(now);
  showConnections(now);
  showGroup(now);
  showCounters(now);
  showEntries("slow", "slow-list", "slow",
    ["verb", "us", "keys", "key", "client", "why"], now);
  showEntries("hot", "hot-list", "hot",
    ["key", "counter", "gets", "changes", "share"], now);
}

// ---- asking ----

let heardAt = Date.now();

async function poll() {
  const silent = byId("silent");
  try {
    const answer = await fetch("/status.json",
      { cache: "no-store", signal: AbortSignal.timeout(LIMIT_MS) });
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    show(await answer.json());
    heardAt = Date.now();
    silent.hidden = true;
  } catch (error) {
    silent.textContent = `No answer for ${time(Date.now() - heardAt)}: ` +
      `${error.message}. What is below is old.`;
    silent.hidden = false;
  }
  setTimeout(poll, POLL_MS);
}

poll();
