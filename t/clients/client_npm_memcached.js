// SPDX-License-Identifier: BSD-3-Clause
// The npm package memcached: client_npm_memcached.js PORT text items|cells.
// Numbers have flags 8.
"use strict";

const { promisify } = require("util");
const Memcached = require("memcached");
const { run } = require("./node_rows.js");

const client = new Memcached("127.0.0.1:" + process.argv[2], {
  retries: 0,
  timeout: 60000,
  maxValue: 1 << 22,
});

const call = (name) => promisify(client[name].bind(client));
const [get, gets, getMulti, cas, append, prepend, stats] = ["get", "gets",
  "getMulti", "cas", "append", "prepend", "stats"].map(call);

run({
  // A SERVER_ERROR counts as a server that is down.
  lacks: ["too-large"],
  set: call("set"),
  add: call("add"),
  replace: call("replace"),
  append,
  prepend,
  del: call("del"),
  touch: call("touch"),
  get,
  gets: async (key) => {
    const found = await gets(key);
    return [found[key], found.cas];
  },
  cas: (key, value, unique) => cas(key, value, unique, 0),
  getMany: async (keys) => ({ ...(await getMulti(keys)) }),
  incr: call("incr"),
  decr: call("decr"),
  stats: async () => (await stats())[0],
  flush: call("flush"),
  end: () => client.end(),
});
