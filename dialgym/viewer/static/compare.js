// Two policies on the same seeds: a table of seeds, and the dialogues of one side by side.

import { get, trying } from "./api.js";
import { drawDialogue } from "./dialogues.js";
import { add, choice, h, number, percent, show } from "./dom.js";
import { last, sides } from "./sides.js";

const ORDERS = {
  seed: () => 0,
  difference: (a, b) => Math.abs(b.difference) - Math.abs(a.difference),
  second: (a, b) => b.difference - a.difference,
  first: (a, b) => a.difference - b.difference,
};
const NAMES = [["seed", "in order"], ["difference", "greatest difference"], ["second", "second better"], ["first", "first better"]];

export async function compare({ place, site, query, onkey }) {
  const below = h("div");
  let step = () => {};
  add(place, h("h1", null, "Compare two policies"), sides(site, query, draw), below);
  onkey({ j: () => step(1), k: () => step(-1) });
  if (last.found) draw(last.found);

  function draw(found) {
    const both = h("div.both");
    const table = h("tbody");
    let order = "seed", rows = [], current = -1;

    async function open(i) {
      if (!rows[i]) return;
      current = i;
      [...table.children].forEach((row, k) => row.setAttribute("aria-selected", String(k === i)));
      const pair = await trying(() => get(`compare/${found.comparison}/${rows[i].number}`));
      if (!pair || current !== i) return;
      const columns = pair.dialogues.map((dialogue, side) => {
        const column = h("section.one.card");
        drawDialogue(column, dialogue, pair.sources[side], { mark: pair.parts, title: found.sides[side].name });
        return column;
      });
      show(both, pair.parts === null ? h("p.note.wide", null, "They never say different things in the same situation.") : null, columns);
    }

    function list() {
      rows = found.rows.map((row, i) => ({ ...row, number: i })).sort(ORDERS[order]);
      show(table, rows.map((row, i) => h("tr", { tabIndex: 0, onclick: () => open(i), onkeydown: (event) => { if (event.key === "Enter") open(i); } },
        h("td", null, row.number), row.returns.map((value) => h("td", null, number(value))),
        h(`td.${row.difference > 0 ? "good" : row.difference < 0 ? "poor" : "none"}`, null, `${row.difference > 0 ? "+" : ""}${number(row.difference)}`))));
    }

    step = (by) => open(Math.max(0, Math.min(rows.length - 1, current + by)));
    list();
    show(below, summary(found),
      h("div.split", null, h("section.list", null,
        h("div.filters", null, choice(NAMES, order, { "aria-label": "order", onchange: (event) => { order = event.target.value; list(); open(0); } })),
        h("div.scroll", null, h("table.figures.seeds", null,
          h("thead", null, h("tr", null, h("th", null, "no."), found.sides.map((side) => h("th", { title: side.name }, side.name)), h("th", { title: "second − first" }, "second − first"))), table))), both));
    open(0);
  }
}

function summary(found) {
  const [first, second] = found.sides;
  return h("div.card.summary", null,
    [first, second].map((side) => h("div", null, h("h3", null, side.name), h("p", null, "mean return ", h("b", null, number(side.mean)), ` · success ${percent(side.success)} · better in ${side.wins} of ${found.count}`))),
    h("div", null, h("h3", null, "Difference"), h("p", null, h("b", null, `${found.difference > 0 ? "+" : ""}${number(found.difference)}`), ` [${found.interval.map((bound) => number(bound)).join(", ")}] (mean, 95\u00a0% interval) · alike in ${found.ties}`)),
    h("a.button", { href: "#/rate" }, "Rate these replies"));
}
