// The form in which two sides are chosen: stored dialogues, or policies that play now.

import { get, post, trying } from "./api.js";
import { choice, field, h, show } from "./dom.js";

// The comparison that was made last is gone on with on the page of ratings.
export const last = { found: null, asked: {} };

export function sides(site, query, made) {
  const stored = site.sources.filter((source) => source.kind === "dialogues");
  const envs = [...new Set(site.envs.filter((env) => env.view !== "utterance").map((env) => env.env.replace("dialgym/", "")))];
  const given = (site.sources.find((source) => source.kind === "run" && source.env)?.env || "").replace("dialgym/", "");
  const state = { env: given || "Wordle-20-v0", episodes: 20, seed: 0, first: "", second: "", ...last.asked, ...Object.fromEntries(query) };
  const place = h("form.card.sides", { onsubmit: (event) => { event.preventDefault(); compare(); } });
  const datalist = h("datalist", { id: "envs" }, envs.map((env) => h("option", { value: env })));
  let playing = [];

  async function draw() {
    const known = await get("policies", { env: state.env }).catch(() => null);
    playing = known ? [...known.runs, ...known.policies] : [];
    const options = [];
    for (const source of stored) {
      options.push([`data:${source.number}:`, `stored: ${source.name}`]);
      if (source.policies.length > 1) for (const [policy] of source.policies) options.push([`data:${source.number}:${policy}`, `stored: ${source.name}, ${policy}`]);
    }
    for (const name of playing) options.push([`plays:${name}`, `plays now: ${name}`]);
    const values = options.map(([value]) => value);
    if (!values.includes(state.first)) state.first = values[0] || "";
    if (!values.includes(state.second)) state.second = values.find((value) => value !== state.first && (!value.startsWith("data:") || stored.length > 1)) || "";
    const pick = (name) => choice(options, state[name], { name, onchange: (event) => { state[name] = event.target.value; drawn(); } });
    const plays = h("div.filters.plays", null,
      field("environment", h("input", { name: "env", value: state.env, "list": "envs", required: true, onchange: (event) => { state.env = event.target.value.trim(); draw(); } }), known ? null : "no such environment"),
      field("dialogues", h("input.short", { name: "episodes", type: "number", min: 1, max: 200, value: state.episodes, onchange: (event) => { state.episodes = event.target.value; } })),
      field("seed", h("input.short", { name: "seed", type: "number", min: 0, value: state.seed, onchange: (event) => { state.seed = event.target.value; } })));
    const drawn = () => { plays.hidden = ![state.first, state.second].some((value) => value.startsWith("plays:")) && known !== null; };
    drawn();
    show(place, datalist, h("div.filters", null, field("first", pick("first")), field("second", pick("second"))), plays,
      h("button.primary", { type: "submit", name: "go" }, "Compare"));
  }

  function side(value) {
    const [kind, ...rest] = value.split(":");
    if (kind === "plays") return { policy: rest.join(":") };
    const [source, ...policy] = rest;
    return { source: Number(source), policy: policy.join(":") };
  }

  async function compare() {
    const button = place.querySelector("button[name=go]");
    button.disabled = true;
    button.textContent = "Playing …";
    const found = await trying(() => post("compare", {
      first: side(state.first), second: side(state.second), env: state.env, episodes: Number(state.episodes), seed: Number(state.seed),
    }));
    button.disabled = false;
    button.textContent = "Compare";
    if (found) { last.found = found; last.asked = { ...state }; made(found); }
  }

  draw();
  return place;
}
