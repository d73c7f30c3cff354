// SPDX-License-Identifier: BSD-3-Clause
// The clients of npm through a failover, see README.
"use strict";

const { promisify } = require("util");
const [name, , addresses, keys] = process.argv.slice(2);
const list = addresses.split(",");

const makers = {
  memcached() {
    const Memcached = require("memcached");
    const client = new Memcached(list, {
      timeout: 2000, retries: 0, retry: 1000, reconnect: 1000, failures: 1000,
      remove: false,
    });
    return promisify(client.incr.bind(client));
  },
  "memcache-plus"() {
    const MemcachePlus = require("memcache-plus");
    const client = new MemcachePlus({ hosts: list, netTimeout: 2000 });
    return (key, by) => client.incr(key, by);
  },
  memjs() {
    const memjs = require("memjs");
    const client = memjs.Client.create(addresses, {
      timeout: 2, retries: 2, conntimeout: 0.2, failover: false,
      logger: { log() {} },
    });
    return async (key, by) => (await client.increment(key, by)).value;
  },
};

const incr = makers[name]();
const later = (ms) => new Promise((done) => setTimeout(done, ms));

// A client that never calls back is one more thing that is seen.
const limited = (promise) => Promise.race([promise,
  later(5000).then(() => { throw new Error("no answer for 5 s"); })]);

async function once(key) {
  let what;
  try {
    const answer = await limited(incr(key, 1));
    if (typeof answer === "number") {
      console.log("ok " + answer);
      return true;
    }
    what = answer + " is returned";
  } catch (error) {
    what = (error && error.name) + ": " + (error && error.message);
  }
  console.log("error " + what.replace(/\s+/g, " "));
  return false;
}

process.on("uncaughtException", (error) => {
  console.log("error uncaught " + error.message.replace(/\s+/g, " "));
});

(async () => {
  for (const key of keys.split(",")) {
    if (await once(key)) {
      console.log("key " + key);
      for (;;) {
        await once(key);
        await later(20);
      }
    }
  }
  process.exit(0);
})();
