// Stored dialogues: a list that is filtered, sorted and searched, and one of them beside it.

import { get, post, trying } from "./api.js";
import { add, choice, count, h, number, percent, show } from "./dom.js";
import { tabs } from "./tabs.js";
import { board, utterance, verdict } from "./turns.js";

const LIMIT = 50;
const SORTS = [["order", "in order"], ["return", "by return"], ["length", "by length"], ["seed", "by seed"]];
const FILTERS = ["q", "policy", "env", "kind", "success", "least", "most", "sort", "descending"];

export async function dialogues({ place, site, parts, query, onkey }) {
  const source = site.sources.find((s) => s.kind === "dialogues" && String(s.number) === parts[0])
    || site.sources.find((s) => s.kind === "dialogues");
  if (!source) throw new Error("No data set was given. Start with: dialgym view FOLDER");
  const asked = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) || ""]));
  const list = h("div.rows", { role: "listbox", "aria-label": "Dialogues" });
  const stats = h("p.stats");
  const one = h("section.one", { "aria-live": "polite" });
  const more = h("button.quiet", { type: "button", onclick: () => load(true) }, "Show more");
  const split = h("div.split", null, h("section.list", null, stats, list, more), one);
  let rows = [];
  let current = -1;
  let asking = 0;

  add(place, h("h1", null, source.name), tabs(site, "dialogues", source.number), filters(source, asked, () => { remember(); load(); }), analysis(source), split);

  function remember() {
    const given = new URLSearchParams(Object.entries(asked).filter(([, value]) => value));
    if (current >= 0) given.set("row", rows[current]?.row ?? "");
    history.replaceState(null, "", `#/data/${source.number}?${given}`);
  }

  async function load(further = false) {
    const own = ++asking;
    const page = await trying(() => get(`dialogues/${source.number}`, { ...asked, offset: further ? rows.length : 0, limit: LIMIT }));
    if (!page || own !== asking) return; // something else has been asked since
    rows = further ? [...rows, ...page.rows] : page.rows;
    show(stats, page.found === page.total ? count(page.total, "dialogue") : `${page.found} of ${count(page.total, "dialogue")}`,
      page.found ? ` · mean return ${number(page.mean)} · success ${percent(page.success)}` : "");
    show(list, rows.map((row, i) => item(row, i)), rows.length ? null : h("p.empty", null, "No dialogue is like that."));
    more.hidden = rows.length >= page.found;
    if (!further) { current = -1; if (rows.length && matchMedia("(min-width: 800px)").matches) open(0); else show(one); }
  }

  function item(row, i) {
    return h("button.row", { type: "button", role: "option", "data-row": row.row, onclick: () => open(i, true) },
      h("span.words", null, row.words || "nothing was said"),
      h("span.meta", null, h(`b.${row.success ? "good" : "poor"}`, null, number(row.return)), ` · ${count(row.length, "turn")} · ${row.policy || "nobody named"}`, row.kind ? ` · ${row.kind}` : ""));
  }

  async function open(i, asked_for = false) {
    if (!rows[i]) return;
    current = i;
    [...list.children].forEach((child, k) => child.setAttribute("aria-selected", String(k === i)));
    list.children[i].scrollIntoView({ block: "nearest" });
    const row = rows[i].row;
    const found = await trying(() => get(`dialogues/${source.number}/${row}`));
    if (!found || current !== i) return;
    drawDialogue(one, found, source.number);
    if (asked_for) { remember(); one.scrollTo({ top: 0 }); if (matchMedia("(max-width: 799px)").matches) one.scrollIntoView(); }
  }

  onkey({ j: () => open(Math.min(current + 1, rows.length - 1), true), k: () => open(Math.max(current - 1, 0), true) });
  await load();
  const wanted = rows.findIndex((row) => String(row.row) === query.get("row"));
  if (wanted >= 0) await open(wanted, true);
  else if (query.get("row")) {
    const found = await trying(() => get(`dialogues/${source.number}/${query.get("row")}`));
    if (found) drawDialogue(one, found, source.number);
  }
}

// Success by domain, requests, misheard acts, loops, and failures with links to dialogues.
function analysis(source) {
  const place = h("div");
  const table = ({ title, rows: [head, ...rows] }) => h("div.scroll", null, h("h3", null, title), h("table.figures", null,
    h("thead", null, h("tr", null, head.map((name) => h("th", null, name)))),
    h("tbody", null, rows.map((cells) => h("tr", null, cells.map((cell) => h("td", null, cell)))))));
  const link = (row) => [h("a", { href: `#/data/${source.number}?row=${row}` }, String(row)), " "];
  async function load() {
    if (place.children.length) return;
    const found = await trying(() => get(`dialogues/${source.number}/analysis`));
    if (!found) return;
    show(place, found.tables.map(table), found.failures.length ? h("h3", null, "Most frequent failures") : null,
      h("ul", null, found.failures.map(({ kind, count: n, rows }) => h("li", null, `${n} × ${kind}: `, rows.map(link)))),
      h("p.note", null, found.caption));
  }
  return h("details.card.analysis", { ontoggle: load }, h("summary", null, "Analysis"), place);
}

function filters(source, asked, changed) {
  const on = (name) => ({ onchange: (event) => { asked[name] = event.target.type === "checkbox" ? (event.target.checked ? "true" : "") : event.target.value; changed(); } });
  const facet = (name, values, all) => (values.length > 1 ? choice([["", all], ...values.map(([value, n]) => [value, `${value} (${n})`])], asked[name], { "aria-label": name, ...on(name) }) : null);
  let timer;
  const search = h("input", {
    type: "search", placeholder: "Search what was said  ( / )", value: asked.q, "aria-label": "Search",
    oninput: (event) => { clearTimeout(timer); timer = setTimeout(() => { asked.q = event.target.value; changed(); }, 250); },
  });
  const bound = (name, text) => h("input.short", { type: "number", step: "any", placeholder: text, value: asked[name], "aria-label": text, ...on(name) });
  return h("div.filters", null, search,
    facet("policy", source.policies, "all policies"), facet("env", source.envs, "all environments"), facet("kind", source.kinds, "all kinds"),
    choice([["", "any end"], ["yes", "success"], ["no", "no success"]], asked.success, { "aria-label": "success", ...on("success") }),
    bound("least", "return from"), bound("most", "return to"),
    choice(SORTS, asked.sort || "order", { "aria-label": "sort", ...on("sort") }),
    h("label.check", null, h("input", { type: "checkbox", checked: asked.descending === "true", ...on("descending") }), "greatest first"));
}

// A whole dialogue; also one of two that are compared.
export function drawDialogue(where, found, source, { mark = null, title = null, rated = true } = {}) {
  const turns = h("div.turns");
  const draw = (replay) => show(turns, found.turns.map((turn, place) => utterance(turn, {
    more: replay.turns[place] || {}, told: (replay.told || []).includes(place), mark: mark === place, learner: found.learner,
    extra: turn.said && rated ? stars(source, found, place) : null,
  })));
  const head = h("div.head", null, h("h2", null, title || `Dialogue ${found.row}`), verdict(found));
  show(where, head, h("p.meta", null, `${found.env.replace("dialgym/", "")} · ${found.policy} as ${found.learner} · seed ${found.seed}, episode ${found.episode}`),
    found.task === "Wordle" ? board(found.turns, { rows: 0, typed: null, small: true }) : null,
    turns, origin(found));
  draw({ turns: {} });
  get(`dialogues/${source}/${found.row}/replay`).then((replay) => {
    draw(replay);
    if (replay.note) where.append(h("p.note", null, `No values: ${replay.note}`));
    if (replay.same && !replay.rewarded) where.append(h("p.note", null, "Its rewards came with it; the rules would give others."));
    if (!replay.same) where.append(h("p.note", null, "Held once more, this dialogue goes another way: parts of rewards and masks are those of that one."));
  }).catch((error) => where.append(h("p.note", null, `No parts of rewards, no masks: ${error.message}`)));
}

function origin(found) {
  const settings = JSON.stringify(found.settings, null, 1);
  const options = Object.keys(found.options).length ? `\noptions ${JSON.stringify(found.options)}` : "";
  return h("details.origin", null, h("summary", null, "Settings"), h("pre", null, `${found.env} ${settings}${options}${found.tokens ? `\n${found.tokens} tokens are stored` : ""}`));
}

// One to five for a reply.
function stars(source, found, place) {
  const line = h("div.stars", { role: "group", "aria-label": "Rate this reply" });
  const draw = () => show(line, [1, 2, 3, 4, 5].map((value) => h("button", {
    type: "button", title: `${value} of 5`, "aria-label": `${value} of 5`, "aria-pressed": String((found.scores[place] || 0) >= value),
    onclick: async () => {
      const score = found.scores[place] === value ? 0 : value;
      if (await trying(() => post(`score/${source}/${found.row}`, { place, score }))) { found.scores[place] = score; draw(); }
    },
  }, "★")));
  draw();
  return line;
}
