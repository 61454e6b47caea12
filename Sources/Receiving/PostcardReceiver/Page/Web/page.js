// Starts the page. Without scripts, the form is posted by the browser.

import { compose } from "./compose.js";
import { offer, say, words } from "./elements.js";
import { Received } from "./received.js";
import { Requests } from "./requests.js";
import { listen } from "./server.js";

document.documentElement.classList.add("has-scripts");

const received = new Received(document.getElementById("received"));
const requests = new Requests(document.getElementById("requests"));
const connection = document.getElementById("connection");

/** The open request of an address. It can be opened once the list is there. */
let wanted = /^#requests\/(\d+)$/.exec(location.hash)?.[1];

// Events that arrive while the lists are loading are handled again afterwards, because the lists may lack them.
let early;
const replayed = (handler) => (message) => {
  early?.push(() => handler(message));
  handler(message);
};

/** Reloads the lists, and returns whether the list of forms could be read. */
async function load() {
  const missed = [];
  early = missed;
  const [isLoaded] = await Promise.all([received.load(), offer.showsRequests ? requests.load() : undefined]);
  if (early === missed) early = undefined;
  for (const replay of missed) replay();
  if (wanted) requests.open(wanted);
  wanted = undefined;
  return isLoaded;
}

compose({ delivered: replayed((record) => received.add(record)) });

if (offer.canRead) {
  document.getElementById("seen").hidden = false;
  chooseTabs();
  keepPlace();
  say(connection, words("connecting"));
  listen({
    listening() {
      say(connection, words("live"), "live");
      load();
    },
    poll: load,
    polling: () => say(connection, words("polling"), "polling"),
    lost: () => say(connection, words("connecting")),
    uploaded: replayed((record) => received.add(record)),
    deleted: replayed(({ id }) => {
      received.remove(id);
      requests.forget(id);
    }),
    request: replayed((entry) => requests.add(entry)),
    behind: ({ seconds }) => say(connection, words("liveBehind", { seconds }), "live"),
  });
}

/** Keeps the tab and the open request in the address, which the other language gets too. */
function keepPlace() {
  const keep = (place) => history.replaceState(null, "", place ? `#${place}` : location.pathname + location.search);
  requests.opened = (id) => keep(id ? `requests/${id}` : "requests");
  for (const tab of document.querySelectorAll("[role=tab]")) {
    tab.addEventListener("click", () => keep(tab.id === "requests-tab" ? "requests" : ""));
  }
  for (const link of document.querySelectorAll(".languages a")) {
    link.addEventListener("click", () => { link.hash = location.hash; });
  }
}

function chooseTabs() {
  const tabs = [...document.querySelectorAll("[role=tab]")];
  if (!offer.showsRequests) document.querySelector("[role=tablist]").hidden = true;
  const choose = (chosen) => {
    for (const tab of tabs) {
      tab.setAttribute("aria-selected", tab === chosen);
      tab.tabIndex = tab === chosen ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = tab !== chosen;
    }
  };
  for (const [index, tab] of tabs.entries()) {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", ({ key }) => {
      if (key !== "ArrowLeft" && key !== "ArrowRight") return;
      const next = tabs[(index + 1) % tabs.length];
      next.click();
      next.focus();
    });
  }
  if (offer.showsRequests && location.hash.startsWith("#requests")) choose(document.getElementById("requests-tab"));
}
