// The start: what was given to look at, and what can be played at once.

import { add, count, h } from "./dom.js";

const GAMES = [
  ["Wordle-v0", "Wordle", "Guess a five-letter word by the colours of your guesses."],
  ["TwentyQuestions-v0", "Twenty questions", "Find out what the other has in mind."],
  ["VisualDialogue-v0", "Visual dialogue", "Ask about a hidden picture, or describe one."],
  ["SlotFilling-v0", "Slot filling", "Help somebody to a restaurant, or be that somebody."],
  ["DailyDialog-Conversation-v0", "Conversation", "Hold an everyday dialogue."],
];

const PAGES = { dialogues: "data", run: "run", results: "results" };
const NAMES = { dialogues: "Data set", run: "Run", results: "Results" };

export function home({ place, site }) {
  const ids = site.envs.map((env) => env.env);
  const games = GAMES.filter(([env]) => ids.includes(`dialgym/${env}`));
  add(place, h("h1", null, "What there is to see"));
  if (!site.sources.length) {
    add(place, h("div.card.empty", null,
      h("p", null, "No run, data set or results were given."),
      h("p", null, "Start with ", h("code", null, "dialgym view runs/NAME data/NAME results.json"), ", or play and compare below.")));
  }
  add(place, h("div.grid", null, site.sources.map(card)));
  add(place, h("h2", null, "Play"), h("div.grid", null, games.map(([env, name, about]) =>
    h("a.card.link", { href: `#/play?env=${encodeURIComponent(env)}` }, h("h3", null, name), h("p", null, about)))));
  add(place, h("h2", null, "Look closer"), h("div.grid", null,
    h("a.card.link", { href: "#/compare" }, h("h3", null, "Compare two policies"), h("p", null, "The same seeds, side by side, turn by turn.")),
    h("a.card.link", { href: "#/rate" }, h("h3", null, "Rate replies"),
      h("p", null, `Which of two is better? ${count(site.ratings.preferences, "preference")} and ${count(site.ratings.scores, "score")} so far, in ${site.ratings.folder}.`))));
}

function card(source) {
  const lines = {
    dialogues: () => [count(source.dialogues, "dialogue"), names(source.envs), `by ${names(source.policies) || "nobody named"}`],
    run: () => [source.env, source.language_model ? "a language model" : source.live ? "learning now" : source.plays ? "has a model" : "no model yet"],
    results: () => [names(source.envs.map((env) => [env])), `${source.policies.join(", ")}`],
  }[source.kind]();
  return h("a.card.link", { href: `#/${PAGES[source.kind]}/${source.number}` },
    h("small.kind", null, NAMES[source.kind], source.live ? h("span.live", null, " ● live") : null),
    h("h3", null, source.name), lines.filter(Boolean).map((line) => h("p", null, line)));
}

function names(pairs) {
  const found = pairs.map(([name]) => name.replace("dialgym/", ""));
  return found.length > 3 ? `${found.slice(0, 3).join(", ")} and ${found.length - 3} more` : found.join(", ");
}
