// The page: its parts, the address of each, themes and keys.

import { get } from "./api.js";
import { h, show } from "./dom.js";
import { chat } from "./chat.js";
import { compare } from "./compare.js";
import { dialogues } from "./dialogues.js";
import { home } from "./home.js";
import { play } from "./play.js";
import { rate } from "./rate.js";
import { results } from "./results.js";
import { run } from "./run.js";

const PAGES = { "": home, data: dialogues, compare, rate, run, results, play, chat };
const KEYS = [
  ["t", "light or dark"], ["?", "these keys"], ["/", "search"],
  ["j  k", "next and last dialogue, pair or turn"], ["g d", "dialogues"], ["g c", "compare"],
  ["g r", "rate"], ["g p", "play"], ["g h", "start"],
  ["1  2  3", "while rating: left, right, neither"], ["u", "take back"],
];
const main = document.getElementById("main");
let leave = null;
let turn = 0;
let keys = {};
let pending = false;

export function parse(hash) {
  const [path, query] = hash.replace(/^#\/?/, "").split("?");
  return { parts: path.split("/"), query: new URLSearchParams(query || "") };
}

async function route() {
  const { parts, query } = parse(location.hash);
  const page = PAGES[parts[0]] || home;
  const own = ++turn;
  if (leave) leave();
  leave = null;
  keys = {};
  try {
    const site = await get("sources");
    if (own !== turn) return;
    navigate(site, parts[0]);
    const place = h("div.page");
    show(main, place);
    const left = await page({ place, site, parts: parts.slice(1), query, onkey: (found) => { if (own === turn) keys = found; } });
    if (typeof left === "function") { if (own === turn) leave = left; else left(); }
  } catch (error) {
    show(main, h("div.page", null, h("div.card.bad", null, h("h2", null, "This did not work"), h("p", null, error.message))));
  }
  document.title = `${document.querySelector("h1")?.textContent || "dialgym"} · dialgym`;
}

function navigate(site, current) {
  const first = (kind) => site.sources.find((source) => source.kind === kind);
  const items = [];
  if (first("dialogues")) items.push(["Dialogues", `#/data/${first("dialogues").number}`, "data"]);
  items.push(["Compare", "#/compare", "compare"], ["Rate", "#/rate", "rate"]);
  if (first("run")) items.push(["Runs", `#/run/${first("run").number}`, "run"]);
  if (first("results")) items.push(["Results", `#/results/${first("results").number}`, "results"]);
  items.push(["Play", "#/play", "play"]);
  if (site.chat) items.push(["Chat", "#/chat", "chat"]);
  show(document.getElementById("nav"), items.map(([text, address, name]) =>
    h("a", { href: address, "aria-current": name === current ? "page" : null }, text)));
  document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });
}

const stored = localStorage.getItem("dialgym-theme");
if (stored) document.documentElement.dataset.theme = stored;

function theme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
  document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
  localStorage.setItem("dialgym-theme", document.documentElement.dataset.theme);
}

function help() {
  const dialog = document.getElementById("keys");
  const rows = KEYS.map(([key, what]) => h("tr", null, h("td", null, key.split(" ").filter(Boolean).map((k) => h("kbd", null, k))), h("td", null, what)));
  show(dialog, h("h2", null, "Keys"), h("table.keys", null, h("tbody", null, rows)),
    h("form", { method: "dialog" }, h("button", { type: "button", onclick: () => dialog.close() }, "Close")));
  dialog.showModal();
}

function pressed(event) {
  const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(event.target.tagName);
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing && event.key === "Escape") event.target.blur();
  if (typing) return;
  if (keys.any && keys.any(event)) { event.preventDefault(); return; }
  const goes = { d: "#/data/0", c: "#/compare", r: "#/rate", p: "#/play", h: "#/" };
  if (pending) {
    pending = false;
    const link = event.key === "d" ? document.querySelector('nav a[href^="#/data"]')?.getAttribute("href") : goes[event.key];
    if (link) { location.hash = link; event.preventDefault(); return; }
  }
  const general = { t: theme, "?": help, g: () => { pending = true; } };
  const action = keys[event.key] || general[event.key];
  if (event.key === "/" && document.querySelector("input[type=search]")) {
    document.querySelector("input[type=search]").focus();
    event.preventDefault();
  } else if (action) {
    action(event);
    event.preventDefault();
  }
}

document.getElementById("theme").addEventListener("click", theme);
document.getElementById("help").addEventListener("click", help);
document.addEventListener("keydown", pressed);
window.addEventListener("hashchange", route);
route();
