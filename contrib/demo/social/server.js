// SPDX-License-Identifier: BSD-3-Clause
// A small social feed: one page, whose numbers are all tallyd's, by the npm
// client memcached as it is. The texts of posts are kept in this process only.
//
// usage: node server.js [--tallyd=HOST:PORT] [--port=NUM]
//   --tallyd   where tallyd is, with social.schema [127.0.0.1:11211]
//   --port     port of 127.0.0.1 for the page [8080]; 0: any, and it is said
//
// A poll of the page is one get of some thirty keys.
"use strict";

const fs = require("fs");
const http = require("http");
const path = require("path");
const { promisify } = require("util");

const USERS = { 1: "ada", 2: "bob", 3: "cem", 4: "dee" };
const SHOWN = 10; // posts
const BODY_BYTES_MAX = 4096;
const TEXT_MAX = 280;
const FIRST_NOTICE = 1;

const PAGE = fs.readFileSync(path.join(__dirname, "page.html"));

function fail(why) {
  console.error("server.js: " + why);
  process.exit(1);
}

function options(words) {
  const found = { tallyd: "127.0.0.1:11211", port: "8080" };
  for (const word of words) {
    const [, name, value] = /^--(tallyd|port)=(.+)$/.exec(word) || [];
    if (word === "--help") {
      console.log(fs.readFileSync(__filename, "utf8").split("\n")
        .slice(1, 9).map((line) => line.slice(3)).join("\n"));
      process.exit(0);
    }
    if (name === undefined) {
      fail("no such option: " + word + "; see --help");
    }
    found[name] = value;
  }
  return found;
}

function connect(address) {
  let Memcached;
  try {
    Memcached = require("memcached");
  } catch {
    fail("the npm client memcached is not here: say npm install first");
  }
  const client = new Memcached(address, { retries: 0, timeout: 5000 });
  const call = {};
  for (const name of ["get", "getMulti", "set", "add", "incr", "del"]) {
    call[name] = promisify(client[name].bind(client));
  }
  return call;
}

// What is not a number: posts, newest last, and whom they mention; and when the
// newest notice was published: before this program began, or as noted here.
const posts = []; // { id, author, text }
let notice = Date.now();
let tallyd;

// An add of what is there already is no error here.
async function addOnce(key, value) {
  try {
    await tallyd.add(key, value, 0);
  } catch (error) {
    if (!/not stored/i.test(String(error && error.message))) {
      throw error;
    }
  }
}

// The state of the page for a user, by one get.
async function look(user) {
  const shown = posts.slice(-SHOWN).reverse();
  const own = { at: "at", unat: "unat", notices: "unn", dot: "undot",
    feed: "feed" };
  const keys = ["1.dot"];
  keys.push(...Object.values(own).map((suffix) => `${user}.${suffix}`));
  for (const post of shown) {
    keys.push(`${post.id}.cntan`, `${post.id}.liked:${user}`);
  }
  const newest = notice; // what comes from here on stays unread
  const got = await tallyd.getMulti(keys);
  const number = (key) => Number(got[key] || 0);
  const state = { user: Number(user), name: USERS[user],
    board: { notice: newest, dot: number("1.dot") } };
  for (const [name, suffix] of Object.entries(own)) {
    state[name] = number(`${user}.${suffix}`);
  }
  state.posts = shown.map((post) => ({ ...post, name: USERS[post.author],
    likes: number(`${post.id}.cntan`),
    liked: number(`${post.id}.liked:${user}`) === 1 }));
  return state;
}

async function write(user, text) {
  if (typeof text !== "string" || text.trim() === "" ||
      text.length > TEXT_MAX) {
    throw new RangeError(`a post has 1 to ${TEXT_MAX} characters`);
  }
  const id = 1001 + posts.length;
  posts.push({ id, author: user, text });
  await tallyd.incr(`${user}.posts`, 1);
  for (const [other, name] of Object.entries(USERS)) {
    if (text.includes("@" + name)) {
      await tallyd.incr(`${other}.at`, 1);
    }
  }
}

function postOf(id) {
  const post = posts.find((one) => one.id === id);
  if (post === undefined) {
    throw new RangeError("there is no such post");
  }
  return post.id;
}

function place(value) {
  if (!Number.isSafeInteger(value) || value < 0) {
    throw new RangeError("a place is a number");
  }
  return String(value);
}

// What a user can do. A place is what the page has shown: what comes between
// stays unread, and done twice is done once.
const ACTIONS = {
  post: (user, { text }) => write(user, text),
  like: (user, { post }) => addOnce(`${postOf(post)}.liked:${user}`, "1"),
  unlike: (user, { post }) => tallyd.del(`${postOf(post)}.liked:${user}`),
  atRead: (user, { at }) => tallyd.set(`${user}.atseen`, place(at), 0),
  noticesRead: (user, { at }) => tallyd.set(`${user}.nseen`, place(at), 0),
  dotRead: (user, { at }) => tallyd.set(`${user}.dotseen`, place(at), 0),
  feedRead: (user) => tallyd.set(`${user}.feed`, "", 0),
  notice: () => publish(Math.max(Date.now(), notice + 1)),
  dot: () => tallyd.incr("1.dot", 1),
};

// A notice is a member: published twice, it is one.
// Nobody is told of it before it is there: what is marked as read was shown.
async function publish(id) {
  await tallyd.set(`1.notice:${id}`, "1", 0);
  notice = Math.max(notice, id);
}

// Every user follows all others, and has seen all notices that there are: a
// mark stops at the newest one, and there is one. So a new user's notices count
// from the first visit.
async function welcome(user) {
  const others = Object.keys(USERS).filter((other) => other !== user);
  await addOnce(`${user}.feed`, others.join(" "));
  await addOnce(`1.notice:${FIRST_NOTICE}`, "1");
  await addOnce(`${user}.nseen`, String(Number.MAX_SAFE_INTEGER));
}

function body(request) {
  return new Promise((resolve, reject) => {
    let text = "";
    request.on("data", (piece) => {
      text += piece;
      if (text.length > BODY_BYTES_MAX) {
        reject(new RangeError("that is too long"));
        request.destroy();
      }
    });
    request.on("end", () => resolve(text));
    request.on("error", reject);
  });
}

async function answer(request, url) {
  const user = url.searchParams.get("user");
  if (!Object.hasOwn(USERS, user)) {
    throw new RangeError("there is no such user");
  }
  if (request.method === "POST") {
    const asked = JSON.parse(await body(request));
    if (!Object.hasOwn(ACTIONS, asked.what)) {
      throw new RangeError("there is no such action");
    }
    await ACTIONS[asked.what](user, asked);
  } else {
    await welcome(user);
  }
  return look(user);
}

async function serve(request, response) {
  const url = new URL(request.url, "http://localhost");
  const send = (status, type, text) => {
    response.writeHead(status, { "Content-Type": type,
      "Cache-Control": "no-store" });
    response.end(text);
  };
  if (url.pathname === "/") {
    send(200, "text/html; charset=utf-8", PAGE);
    return;
  }
  if (url.pathname !== "/state") {
    send(404, "text/plain", "not here\n");
    return;
  }
  try {
    send(200, "application/json", JSON.stringify(await answer(request, url)));
  } catch (error) {
    const isAsked = error instanceof RangeError || error instanceof SyntaxError;
    send(isAsked ? 400 : 502, "text/plain", String(error.message || error));
  }
}

const asked = options(process.argv.slice(2));
tallyd = connect(asked.tallyd);
const server = http.createServer(serve);
server.on("error", (error) => fail(error.message));
server.listen(Number(asked.port), "127.0.0.1", () => {
  console.log(`http://127.0.0.1:${server.address().port}/?user=1`);
});
