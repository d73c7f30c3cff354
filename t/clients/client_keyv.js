// SPDX-License-Identifier: BSD-3-Clause
// keyv with @keyv/memcache, over memjs: client_keyv.js PORT binary
// items|cells. It stores JSON of its own around each value, so only items.
"use strict";

const { default: Keyv } = require("keyv");
const { default: KeyvMemcache } = require("@keyv/memcache");
const { run } = require("./node_rows.js");

const store = new KeyvMemcache("127.0.0.1:" + process.argv[2],
  { timeout: 60 });
const keyv = new Keyv({ store });

run({
  // keyv puts a namespace before the key.
  lacks: ["long-key"],
  set: (key, value, exptime) => keyv.set(key, value, exptime * 1000),
  del: (key) => keyv.delete(key),
  get: (key) => keyv.get(key),
  getMany: async (keys) => {
    const found = await keyv.getMany(keys);
    return Object.fromEntries(keys.map((key, i) => [key, found[i]])
      .filter(([, value]) => value !== undefined));
  },
  flush: () => keyv.clear(),
  end: () => store.client.close(),
});
