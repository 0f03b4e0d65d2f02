// A training run: its curve as it grows, its sample dialogues, its settings.

import { get, trying } from "./api.js";
import { chart } from "./chart.js";
import { add, choice, h, number, show } from "./dom.js";
import { tabs } from "./tabs.js";
import { board, guesses, utterance } from "./turns.js";

const EVERY = 2000;

export async function run({ place, site, parts }) {
  const source = site.sources.find((s) => s.kind === "run" && String(s.number) === parts[0]) || site.sources.find((s) => s.kind === "run");
  if (!source) throw new Error("No run was given. Start with: dialgym view runs/NAME");
  const state = h("div.chips"), curve = h("div.card"), samples = h("section.samples"), settings = h("pre");
  add(place, h("h1", null, source.name), tabs(site, "run", source.number), state,
    h("h2", null, "Return while learning"), curve, h("h2", null, "Dialogues while learning"), samples,
    h("details.origin", null, h("summary", null, "Settings"), settings));
  let known = "", chosen = null, timer = null, gone = false;

  async function look() {
    const found = await trying(() => get(`runs/${source.number}`));
    if (gone) return;
    timer = setTimeout(look, document.hidden ? 5 * EVERY : EVERY);
    if (!found) return;
    const text = JSON.stringify({ ...found, idle: 0 });
    drawState(state, found);
    if (text === known) return;
    known = text;
    show(curve, chart({
      lines: [
        { name: "each rollout", xs: found.curve.steps, ys: found.curve.returns, kind: "raw" },
        { name: "smoothed", xs: found.curve.steps, ys: found.curve.smooth, kind: "main" },
        { name: "evaluations", xs: found.evaluations.map(([step]) => step), ys: found.evaluations.map(([, value]) => value), kind: "dots" },
      ],
      levels: found.curve.references, label: "timesteps", about: "mean return by timesteps",
    }));
    show(settings, `${found.folder}\n${JSON.stringify(found.config, null, 1)}`);
    await drawSamples(found);
  }

  async function drawSamples(found) {
    if (!found.samples.length) {
      show(samples, h("p.empty", null, "There are no sample dialogues. A run writes some at each evaluation: dialgym train ... --eval-freq 10000"));
      return;
    }
    const newest = found.samples[found.samples.length - 1];
    const at = chosen ?? newest;
    const read = await trying(() => get(`runs/${source.number}/samples/${at}`));
    if (!read || gone) return;
    const wordle = (found.env || "").includes("Wordle");
    const select = choice([...found.samples].reverse().map((step) => [step, `${step.toLocaleString("en")} timesteps${step === newest ? ", the newest" : ""}`]), at, {
      "aria-label": "timesteps",
      onchange: (event) => { chosen = Number(event.target.value) === newest ? null : Number(event.target.value); drawSamples(found); },
    });
    show(samples, h("div.filters", null, select), h("div.grid.wide", null, read.dialogues.map((dialogue) => h("div.card", null,
      h("p.meta", null, `seed ${dialogue.seed} · return `, h("b", null, number(dialogue.return)), dialogue.success === null ? "" : dialogue.success ? " · success" : " · no success"),
      wordle && 2 * guesses(dialogue.turns).length === dialogue.turns.length ? board(dialogue.turns, { rows: 0, typed: null, small: true }) : h("div.turns", null, dialogue.turns.map((turn) => utterance({ ...turn, said: turn.party === "system", reward: null })))))));
  }

  await look();
  return () => { gone = true; clearTimeout(timer); };
}

function drawState(place, found) {
  const { steps, returns } = found.curve;
  const seconds = found.idle === null ? "" : `, last written ${ago(found.idle)} ago`;
  show(place, h(`span.chip${found.live ? ".good" : ""}`, null, found.live ? `● learning now${seconds}` : `ended${seconds}`),
    h("span.chip", null, found.language_model ? "a language model" : found.env || "an environment that is not known here"),
    steps.length ? h("span.chip", null, `${steps[steps.length - 1].toLocaleString("en")} timesteps`) : null,
    returns.length ? h("span.chip", null, "return ", h("b", null, number(found.curve.smooth[found.curve.smooth.length - 1]))) : null);
}

function ago(seconds) {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86400)} days`;
}
