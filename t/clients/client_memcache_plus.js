// SPDX-License-Identifier: BSD-3-Clause
// memcache-plus: client_memcache_plus.js PORT text items|cells. Numbers have
// flags 8. Nothing is null.
"use strict";

const MemcachePlus = require("memcache-plus");
const { run } = require("./node_rows.js");

const client = new MemcachePlus({
  hosts: ["127.0.0.1:" + process.argv[2]],
  maxValueSize: 1 << 22,
  autodiscover: false,
  netTimeout: 60000,
});

const some = (value) => (value === null ? undefined : value);

run({
  // Bytes are taken for text and read line by line, without empty ones;
  // a key has fewer than 250 bytes.
  lacks: ["bytes", "empty", "long-key"],
  set: async (key, value, exptime) =>
    (await client.set(key, value, exptime), true),
  add: async (key, value, exptime) =>
    (await client.add(key, value, exptime), true),
  replace: async (key, value, exptime) =>
    (await client.replace(key, value, exptime), true),
  append: async (key, value) => (await client.append(key, value), true),
  prepend: async (key, value) => (await client.prepend(key, value), true),
  del: (key) => client.delete(key),
  get: async (key) => some(await client.get(key)),
  gets: (key) => client.gets(key),
  cas: (key, value, unique) => client.cas(key, value, unique, 0),
  getMany: async (keys) => {
    const found = await client.getMulti(keys);
    return Object.fromEntries(
      Object.entries(found).filter(([, value]) => value !== null));
  },
  // Not a number, where there is none.
  incr: async (key, by) => (await client.incr(key, by)) || false,
  decr: (key, by) => client.decr(key, by),
  flush: () => client.flush(),
  end: () => client.disconnect(),
});
