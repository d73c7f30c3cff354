// SPDX-License-Identifier: BSD-3-Clause
// The page of contrib/demo/social in a browser, two tabs as two users:
// node demo.js URL CHROMIUM [PICTURE]. URL is the page's without a user. A
// line "ok" for each thing that came about; exits with 1 and says what did not.
// PICTURE: a file to which the page is drawn at the end.
"use strict";

const puppeteer = require("puppeteer-core");

const LIMIT_MS = 120000; // what has not come by then does not come
// A tab in the background draws no frames, so that is not waited for.
const WAIT = { timeout: LIMIT_MS, polling: 100 };
const [url, chromium, picture] = process.argv.slice(2);

const text = (tab, selector) =>
  tab.$eval(selector, (element) => element.textContent.trim());

// Waits until an element's text is this.
async function shows(tab, selector, wanted) {
  try {
    await tab.waitForFunction(
      (where, what) => {
        const element = document.querySelector(where);
        return element !== null && element.textContent.trim() === what;
      },
      WAIT, selector, wanted);
  } catch {
    const error = await text(tab, "#error");
    const found = await tab.$(selector) ? await text(tab, selector) : "nothing";
    throw new Error(`${selector} is "${found}", not "${wanted}"; ${error}`);
  }
}

const dot = (tab, isLit) => tab.waitForFunction(
  (lit) => document.getElementById("undot").hidden !== lit,
  WAIT, isLit);

async function open(browser, user) {
  const tab = await browser.newPage();
  await tab.setViewport({ width: 720, height: 480 });
  await tab.goto(`${url}/?user=${user}`, { timeout: LIMIT_MS });
  await tab.waitForFunction(() => document.getElementById("who").textContent,
    WAIT);
  return tab;
}

// A tab in the background is not clicked either.
async function click(tab, selector) {
  await tab.bringToFront();
  await tab.click(selector);
}

async function write(tab, words) {
  await tab.bringToFront();
  await tab.type("#text", words);
  await tab.click("#write button");
}

const LIKE = "article:first-child .like";
const LIKES = "article:first-child .likes";

const STEPS = {
  "a post is in the other's feed, and the mention's badge is lit": async (
    { ada, bob }) => {
    await write(ada, "hello @bob");
    await shows(bob, "article .text", "hello @bob");
    await shows(bob, "#unat", "1");
    await shows(bob, "#unfeed", "1");
    await shows(ada, "#unat", "");
  },
  "a click likes: the number goes up, in both tabs": async ({ ada, bob }) => {
    await click(bob, LIKE);
    await shows(bob, LIKE, "liked");
    await shows(bob, LIKES, "1");
    await shows(ada, LIKES, "1");
    await shows(ada, LIKE, "like");
  },
  "another user's like counts, too, and a second click takes it back": async (
    { ada, bob }) => {
    await click(ada, LIKE);
    await shows(bob, LIKES, "2");
    await shows(ada, LIKE, "liked");
    await click(ada, LIKE);
    await shows(bob, LIKES, "1");
    await shows(ada, LIKE, "like");
  },
  "what is read is no longer unread": async ({ ada, bob }) => {
    await click(bob, "#mentions");
    await shows(bob, "#unat", "");
    await write(ada, "more for @bob");
    await shows(bob, "#unat", "1");
    await click(bob, "#mentions");
    await shows(bob, "#unat", "");
    await shows(bob, "#unfeed", "2");
    await click(bob, "#feed");
    await shows(bob, "#unfeed", "");
  },
  "a notice is for all, and read by each": async ({ ada, bob }) => {
    await click(ada, "#publish");
    await shows(ada, "#unn", "1");
    await shows(bob, "#unn", "1");
    await click(ada, "#notices");
    await shows(ada, "#unn", "");
    await shows(bob, "#unn", "1");
  },
  "the red dot is lit for all, and goes with a click": async (
    { ada, bob }) => {
    await click(ada, "#light");
    await dot(ada, true);
    await dot(bob, true);
    await click(bob, "#news");
    await dot(bob, false);
    await dot(ada, true);
  },
  "a reload keeps all of it": async ({ bob }) => {
    await bob.bringToFront();
    await bob.reload({ timeout: LIMIT_MS });
    await shows(bob, "article:last-child .like", "liked");
    await shows(bob, "article:last-child .likes", "1");
    await shows(bob, "#unat", "");
    await shows(bob, "#unfeed", "");
    await shows(bob, "#unn", "1");
    await dot(bob, false);
  },
};

async function main() {
  const browser = await puppeteer.launch({ executablePath: chromium,
    protocolTimeout: LIMIT_MS, timeout: LIMIT_MS,
    args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"] });
  try {
    const tabs = { ada: await open(browser, 1), bob: await open(browser, 2) };
    for (const [name, step] of Object.entries(STEPS)) {
      await step(tabs);
      console.log("ok " + name);
    }
    if (picture !== undefined) {
      await write(tabs.ada, "what a day, @cem");
      await shows(tabs.bob, "#unfeed", "1");
      await tabs.bob.bringToFront();
      await tabs.bob.screenshot({ path: picture });
    }
  } finally {
    await browser.close();
  }
}

main().catch((error) => {
  console.log(error.message);
  process.exitCode = 1;
});
