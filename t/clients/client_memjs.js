// SPDX-License-Identifier: BSD-3-Clause
// memjs, which speaks binary: client_memjs.js PORT binary items|cells. A value
// is bytes with flags 0; increment and decrement give numbers, and always send
// an initial value, 0 where the caller gives none.
"use strict";

const memjs = require("memjs");
const { run } = require("./node_rows.js");

const client = memjs.Client.create("127.0.0.1:" + process.argv[2], {
  timeout: 60,
  retries: 0,
  logger: { log() {} },
});

run({
  // prepend sends an append; a number over 32 bits is read wrongly.
  lacks: ["append", "no-number", "wide"],
  number: (n) => Buffer.from(String(n)),
  text: (s) => Buffer.from(s),
  set: (key, value, expires) =>
    client.set(key, Buffer.isBuffer(value) ? value : String(value),
      { expires }),
  add: (key, value, expires) => client.add(key, String(value), { expires }),
  replace: (key, value, expires) =>
    client.replace(key, String(value), { expires }),
  append: (key, value) => client.append(key, value),
  prepend: (key, value) => client.prepend(key, value),
  del: (key) => client.delete(key),
  touch: (key, expires) => client.touch(key, expires),
  get: async (key) => {
    const { value } = await client.get(key);
    return value === null ? undefined : value;
  },
  incr: async (key, by) => (await client.increment(key, by, {})).value,
  decr: async (key, by) => (await client.decrement(key, by, {})).value,
  incrInitial: async (key, by, initial) =>
    (await client.increment(key, by, { initial })).value,
  stats: () => new Promise((resolve, reject) => {
    client.stats((error, server, found) =>
      error ? reject(error) : resolve(found));
  }),
  flush: () => client.flush(),
  end: () => client.close(),
});
