// SPDX-License-Identifier: BSD-3-Clause
// The client memcached of npm, unmodified: node client-npm-memcached.js PORT
// cells|items. It gives numbers flags 8. Exits with 1 and says why.
"use strict";

const assert = require("assert");
const { promisify } = require("util");
const Memcached = require("memcached");

const [port, what] = process.argv.slice(2);
const client = new Memcached("127.0.0.1:" + port, {
  retries: 0,
  timeout: 120000,
});

const call = {};
for (const name of ["set", "get", "gets", "getMulti", "incr", "decr", "cas",
  "add", "replace", "append", "prepend", "del", "touch", "flush"]) {
  call[name] = promisify(client[name].bind(client));
}

// The 100 keys of a feed page, over 3 suffixes, with their numbers.
function page() {
  const numbers = {};
  for (let i = 0; i < 100; i++) {
    const id = 5000000000000000n + BigInt(Math.floor(i / 3) * 3624);
    const suffix = ["cntcm", "cntrn", "cntan"][i % 3];
    numbers[`${id}.${suffix}`] = i % 4 === 0 ? 0 : i * 40000003;
  }
  return numbers;
}

async function cells() {
  assert.strictEqual(await call.set("1.cntcm", 41, 0), true);
  assert.strictEqual(await call.incr("1.cntcm", 1), 42);
  assert.strictEqual(await call.decr("1.cntcm", 2), 40);
  assert.strictEqual(await call.incr("2.cntrn", 5), 5);
  assert.strictEqual(await call.get("1.cntcm"), 40);
  assert.strictEqual(await call.get("3.cntan"), 0);
  const numbers = page();
  for (const [key, number] of Object.entries(numbers)) {
    if (number !== 0) {
      await call.set(key, number, 0);
    }
  }
  const got = await call.getMulti(Object.keys(numbers));
  assert.deepStrictEqual({ ...got }, numbers);
  const { "1.cntcm": value, cas } = await call.gets("1.cntcm");
  assert.strictEqual(value, 40);
  assert.strictEqual(await call.cas("1.cntcm", 50, cas, 0), true);
  assert.strictEqual(await call.cas("1.cntcm", 60, cas, 0), false);
  assert.strictEqual(await call.get("1.cntcm"), 50);
  await assert.rejects(call.add("1.cntcm", 1, 0));
  await assert.rejects(call.set("1.cntcm", "x", 0));
  assert.strictEqual(await call.get("1.cntcm"), 50);
  assert.strictEqual(await call.del("1.cntcm"), true);
  assert.strictEqual(await call.get("1.cntcm"), 0);
}

async function items() {
  assert.strictEqual(await call.set("s", "text 微博", 0), true);
  assert.strictEqual(await call.get("s"), "text 微博");
  assert.strictEqual(await call.set("o", { a: [1, 2.5, null] }, 0), true);
  assert.deepStrictEqual(await call.get("o"), { a: [1, 2.5, null] });
  const bytes = Buffer.from([0, 13, 10, 255, 0]);
  assert.strictEqual(await call.set("b", bytes, 0), true);
  assert.deepStrictEqual(await call.get("b"), bytes);
  assert.strictEqual(await call.set("n", 10, 1000), true);
  assert.strictEqual(await call.incr("n", 5), 15);
  assert.strictEqual(await call.get("n"), 15);
  assert.strictEqual(await call.incr("none", 5), false);
  assert.strictEqual(await call.touch("n", 1000), true);
  assert.strictEqual(await call.append("s", "!"), true);
  assert.strictEqual(await call.get("s"), "text 微博!");
  const { s: text, cas } = await call.gets("s");
  assert.strictEqual(text, "text 微博!");
  assert.strictEqual(await call.cas("s", "new", cas, 0), true);
  assert.strictEqual(await call.cas("s", "newer", cas, 0), false);
  assert.strictEqual(await call.del("s"), true);
  assert.strictEqual(await call.get("s"), undefined);
}

(what === "cells" ? cells : items)()
  .then(() => client.end())
  .catch((error) => {
    console.error(error);
    process.exit(1);
  });
