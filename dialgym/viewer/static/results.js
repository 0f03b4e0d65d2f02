// Scores of policies as a table, and two of them episode by episode.

import { get } from "./api.js";
import { add, choice, field, h, number, percent, show } from "./dom.js";
import { tabs } from "./tabs.js";

export async function results({ place, site, parts }) {
  const source = site.sources.find((s) => s.kind === "results" && String(s.number) === parts[0]) || site.sources.find((s) => s.kind === "results");
  if (!source) throw new Error("No results were given. Start with: dialgym view results.json");
  const { results: found } = await get(`results/${source.number}`);
  const ids = [...new Set(found.flatMap((result) => Object.keys(result.environments)))];
  add(place, h("h1", null, source.name), tabs(site, "results", source.number), ids.map((id) => [table(id, found), measures(id, found)]), pairs(ids, found));
}

function table(id, found) {
  const rows = found.filter((result) => result.environments[id]).map((result) => [result.name, result.environments[id]]);
  const means = rows.map(([, part]) => part.mean_return);
  const [low, high] = [Math.min(...means), Math.max(...means)];
  const bar = (value) => h("span.bar", { "aria-hidden": "true" }, h("progress", { max: 1, value: high > low ? (value - low) / (high - low) : 1 }));
  return h("section.card.scroll", null, h("h2", null, id.replace("dialgym/", "")), h("table.figures", null,
    h("thead", null, h("tr", null, ["policy", "mean return", "", "IQM", "success", "score", "turns"].map((name) => h("th", null, name)))),
    h("tbody", null, rows.map(([name, part]) => h("tr", null, h("td", null, name),
      h("td", null, number(part.mean_return), interval(part.interval)), h("td", null, bar(part.mean_return)), h("td", null, number(part.iqm), interval(part.iqm_interval)),
      h("td", null, percent(part.success)), h("td", null, number(part.score, 1), interval(part.score_interval, 1)), h("td", null, number(part.mean_length)))))),
  h("p.note", null, "In brackets: 95 % stratified bootstrap interval. Score: 0 is the random policy, 100 the expert."));
}

function measures(id, found) {
  const own = found.filter((result) => result.environments[id]);
  const parts = own.map((result) => result.environments[id].measured);
  const names = [...new Set(parts.flatMap((part) => Object.keys(part)))].filter((name) => parts.some((part) => part[name]));
  if (!names.length) return null;
  const cell = (found) => found ? h("td", null, number(found[0], 3), found[1] === null ? null : interval(found.slice(1), 3)) : h("td", null, "-");
  return h("section.card.scroll", null, h("h2", null, `${id.replace("dialgym/", "")}: measures`), h("table.figures", null,
    h("thead", null, h("tr", null, ["measure", ...own.map((result) => result.name)].map((name) => h("th", null, name)))),
    h("tbody", null, names.map((name) => h("tr", null, h("td", null, name), parts.map((part) => cell(part[name])))))),
  h("p.note", null, "Measured of each dialogue, where there was something to measure; 95 % bootstrap intervals."));
}

function interval(bounds, digits = 2) {
  return bounds ? h("small", null, ` [${number(bounds[0], digits)}, ${number(bounds[1], digits)}]`) : null;
}

// The same seeds and episodes of two policies: every difference of returns, from worst to best.
function pairs(ids, found) {
  if (found.length < 2) return null;
  const state = { id: ids[0], first: 0, second: 1 };
  const place = h("div");
  const pick = (name, options) => choice(options, state[name], { "aria-label": name, onchange: (event) => { state[name] = name === "id" ? event.target.value : Number(event.target.value); draw(); } });
  const names = found.map((result, i) => [i, result.name]);
  function draw() {
    const parts = [state.first, state.second].map((i) => found[i].environments[state.id]);
    const seeds = [state.first, state.second].map((i) => JSON.stringify(found[i].seeds));
    if (!parts[0] || !parts[1] || seeds[0] !== seeds[1] || parts[0].returns[0].length !== parts[1].returns[0].length) {
      show(place, h("p.empty", null, "These two were not played on the same seeds and episodes."));
      return;
    }
    const differences = parts[1].returns.flatMap((row, k) => row.map((value, e) => value - parts[0].returns[k][e])).sort((a, b) => a - b);
    const mean = differences.reduce((a, b) => a + b, 0) / differences.length;
    const wins = differences.filter((d) => d > 0).length, losses = differences.filter((d) => d < 0).length;
    const most = Math.max(...differences.map(Math.abs)) || 1;
    show(place, h("p", null, `${found[state.second].name} earns `, h("b", null, number(mean)), ` more on average: better in ${wins} of ${differences.length} dialogues, worse in ${losses}, alike in ${differences.length - wins - losses}.`),
      h("div.bars", { role: "img", "aria-label": "differences of returns, from worst to best" }, sampled(differences).map((d) => {
        const bar = h(`i.${d > 0 ? "good" : d < 0 ? "poor" : "none"}`);
        bar.style.setProperty("--size", String(Math.abs(d) / most));
        return bar;
      })));
  }
  draw();
  return h("section.card", null, h("h2", null, "Two policies on the same dialogues"),
    h("div.filters", null, ids.length > 1 ? field("environment", pick("id", ids)) : null, field("first", pick("first", names)), field("second", pick("second", names))), place);
}

function sampled(values, most = 240) {
  const every = Math.ceil(values.length / most);
  return values.filter((_, i) => i % every === 0);
}
