// SPDX-License-Identifier: BSD-3-Clause
// The rows for the clients in JavaScript, which name things each in their own
// way: a client's program gives an object of functions that return promises.
//
//   set(key, value, exptime), add, replace, append, prepend, del, touch:
//       true; false or rejected where refused
//   get(key), gat(key, exptime): the value, undefined where there is none
//   gets(key): [value, unique]; cas(key, value, unique)
//   getMany(keys): an object; incr(key, by), decr(key, by): a number
//   incrInitial(key, by, initial), stats(): an object, flush(), quiet(key,
//   value): asks for no reply, end()
//
// A function that is not there takes its rows away. number(n) is what a number
// is read as, text(s) what a text under flags 0 is; lacks: other rows without.
"use strict";

const assert = require("assert");
const crypto = require("crypto");

const PAST_S = 1000000000;
const LONG_KEY = ("long-key" + "k".repeat(250)).slice(0, 250);
const BYTES = Buffer.from(Array.from({ length: 1024 }, (_, i) => i & 255));

// Text that compresses by a quarter at most.
function noise(count) {
  return crypto.createCipheriv("aes-128-ctr", Buffer.alloc(16),
    Buffer.alloc(16)).update(Buffer.alloc(count)).toString("base64")
    .slice(0, count);
}

const equal = assert.deepStrictEqual;

function make(client) {
  const number = client.number || ((n) => n);
  const text = client.text || ((s) => s);

  async function holds(key, value) {
    equal(await client.get(key), value);
  }

  async function set(key, value, read = value) {
    equal(await client.set(key, value, 0), true);
    await holds(key, read);
  }

  const setText = (key, value) => set(key, value, text(value));
  const setNumber = (key, value) => set(key, value, number(value));

  async function refused(call) {
    let got;
    try {
      got = await call;
    } catch (error) {
      return;
    }
    equal(got, false);
  }

  async function cas(key) {
    await setNumber(key, 5);
    const [value, unique] = await client.gets(key);
    equal(value, number(5));
    equal(await client.cas(key, 6, unique), true);
    await refused(client.cas(key, 7, unique));
    await holds(key, number(6));
  }

  async function add(key) {
    equal(await client.add(key, 1, 0), true);
    await refused(client.add(key, 2, 0));
    await holds(key, number(1));
  }

  async function replace(key, nothing) {
    await refused(client.replace(key, 1, 0));
    await holds(key, nothing);
    equal(await client.set(key, 1, 0), true);
    equal(await client.replace(key, 2, 0), true);
    await holds(key, number(2));
  }

  async function initial(key) {
    equal(await client.incrInitial(key, 5, 7), 7);
    equal(await client.incrInitial(key, 5, 7), 12);
  }

  // [row, what it does, the functions it needs]
  const items = [
    ["text", () => setText("text", "plain text")],
    ["unicode", () => setText("unicode", "\u5fae\u535a \u00e9")],
    ["bytes", () => set("bytes", BYTES)],
    ["empty", () => setText("empty", "")],
    ["miss", () => holds("miss", undefined)],
    ["add", () => add("add"), "add"],
    ["replace", () => replace("replace", undefined), "replace"],
    ["append", async () => {
      equal(await client.set("append", "text", 0), true);
      equal(await client.append("append", "!"), true);
      equal(await client.prepend("append", "_"), true);
      await holds("append", text("_text!"));
    }, "append"],
    ["cas", () => cas("cas-item"), "cas"],
    ["number", async () => {
      await setNumber("number", 10);
      equal(await client.incr("number", 5), 15);
      equal(await client.decr("number", 3), 12);
      await holds("number", number(12));
    }, "incr"],
    ["floor", async () => {
      await setNumber("floor", 5);
      equal(await client.decr("floor", 9), 0);
      await holds("floor", number(0));
    }, "incr"],
    ["wide", async () => {
      await setNumber("wide", 4294967295);
      equal(await client.incr("wide", 1), 4294967296);
      await holds("wide", number(4294967296));
    }, "incr"],
    ["word", async () => {
      await setText("word", "word");
      await refused(client.incr("word", 1));
      await holds("word", text("word"));
    }, "incr"],
    ["no-number", async () => {
      await refused(client.incr("no-number", 1));
      await holds("no-number", undefined);
    }, "incr"],
    ["initial", () => initial("initial"), "incrInitial"],
    ["delete", async () => {
      await setText("delete", "x");
      equal(await client.del("delete"), true);
      await holds("delete", undefined);
      await refused(client.del("delete"));
    }],
    ["touch", async () => {
      await setText("touch", "x");
      equal(await client.touch("touch", 1000), true);
      await refused(client.touch("touch-none", 1000));
    }, "touch"],
    ["gat", async () => {
      await setText("gat", "x");
      equal(await client.gat("gat", 1000), text("x"));
      equal(await client.gat("gat-none", 1000), undefined);
    }, "gat"],
    ["expired", async () => {
      equal(await client.set("expired", "x", PAST_S), true);
      await holds("expired", undefined);
    }],
    ["multi", async () => {
      const values = {};
      for (let i = 0; i < 100; i++) {
        values["multi-" + i] = number(i);
        equal(await client.set("multi-" + i, i, 0), true);
      }
      const names = Array.from({ length: 120 }, (_, i) => "multi-" + i);
      equal(await client.getMany(names), values);
    }, "getMany"],
    ["large", () => setText("large", noise(1000000))],
    ["too-large", async () => {
      await setText("too-large-not", "x");
      await refused(client.set("too-large", noise(1 << 21), 0));
      await holds("too-large-not", text("x"));
    }],
    ["long-key", () => setText(LONG_KEY, "x")],
    ["quiet", async () => {
      await client.quiet("quiet", "x");
      await holds("quiet", text("x"));
    }, "quiet"],
    ["stats", async () => {
      await setText("stats", "x");
      const found = await client.stats();
      assert(found.pid > 0 && found.curr_items > 0);
    }, "stats"],
    ["flush", async () => {
      await setText("flush", "x");
      await client.flush();
      await holds("flush", undefined);
    }, "flush"],
  ];

  const cells = [
    ["set", () => setNumber("1.cntcm", 41)],
    ["incr", async () => {
      await setNumber("2.cntcm", 41);
      equal(await client.incr("2.cntcm", 1), 42);
      equal(await client.decr("2.cntcm", 2), 40);
      await holds("2.cntcm", number(40));
    }, "incr"],
    ["absent", () => holds("3.cntan", number(0))],
    ["from-0", async () => {
      equal(await client.incr("4.cntrn", 5), 5);
      await holds("4.cntrn", number(5));
    }, "incr"],
    ["zeroed", async () => {
      await setNumber("18.cntcm", 0);
      equal(await client.incr("18.cntcm", 5), 5);
      equal(await client.decr("18.cntcm", 5), 0);
      equal(await client.incr("18.cntcm", 5), 5);
      await holds("18.cntcm", number(5));
    }, "incr"],
    ["initial", () => initial("17.cntcm"), "incrInitial"],
    ["floor", async () => {
      await setNumber("5.cntcm", 5);
      equal(await client.decr("5.cntcm", 9), 0);
      await holds("5.cntcm", number(0));
    }, "incr"],
    ["max", async () => {
      await setNumber("6.cntan", 4294967295);
      equal(await client.incr("6.cntan", 1), 4294967295);
    }, "incr"],
    ["multi", async () => {
      const page = {};
      for (let i = 0; i < 99; i++) {
        const row = Math.floor(i / 3);
        const key = 5000000000000000 + 3624 * row + "." +
          ["cntcm", "cntrn", "cntan"][i % 3];
        const value = row % 3 ? 40000003 * i : 0;
        page[key] = number(value);
        if (value !== 0) {
          equal(await client.set(key, value, 0), true);
        }
      }
      equal(await client.getMany(Object.keys(page)), page);
    }, "getMany"],
    ["columns", async () => {
      await holds("1234.cntcm", number(111));
      await holds("1234.cntrn", number(222));
      await holds("1234.cntan", number(333));
    }],
    ["record", () => holds("1234.weibo", text("111 222 333"))],
    ["forms", async () => {
      await holds("{1234}.cntrn", number(222));
      await holds("1234|#|.cntrn", number(222));
    }],
    ["quiet", async () => {
      await client.quiet("16.cntcm", 3);
      await holds("16.cntcm", number(3));
    }, "quiet"],
    ["add", () => add("7.cntcm"), "add"],
    ["replace", () => replace("8.cntcm", number(0)), "replace"],
    ["cas", () => cas("9.cntcm"), "cas"],
    ["word", async () => {
      await setNumber("10.cntcm", 41);
      await refused(client.set("10.cntcm", "word", 0));
      await holds("10.cntcm", number(41));
    }],
    ["too-wide", async () => {
      await setNumber("11.cntcm", 41);
      await refused(client.set("11.cntcm", 4294967296, 0));
      await holds("11.cntcm", number(41));
    }],
    ["expires", async () => {
      await refused(client.set("12.cntcm", 1, 60));
      await holds("12.cntcm", number(0));
    }],
    ["append", async () => {
      await setNumber("13.cntcm", 41);
      await refused(client.append("13.cntcm", "1"));
      await holds("13.cntcm", number(41));
    }, "append"],
    ["delete", async () => {
      await setNumber("14.cntcm", 41);
      equal(await client.del("14.cntcm"), true);
      await holds("14.cntcm", number(0));
      await refused(client.del("14.cntcm"));
    }],
    ["flush", async () => {
      await setNumber("15.cntcm", 41);
      await client.flush();
      await holds("15.cntcm", number(41));
    }, "flush"],
  ];
  return { items, cells };
}

// Runs the rows of the part that the command line names, one by one.
async function run(client) {
  const lacks = client.lacks || [];
  for (const [row, call, needs] of make(client)[process.argv[4]]) {
    if ((needs && !client[needs]) || lacks.includes(row)) {
      continue;
    }
    try {
      await call();
      console.log("ok", row);
    } catch (error) {
      const lines = (error.stack || "").match(/node_rows.js:\d+/g) || [];
      console.log("not ok", row, lines.join(" "),
        String(error).replace(/\n/g, " ").slice(0, 300));
    }
  }
  await client.end();
}

module.exports = { run };
