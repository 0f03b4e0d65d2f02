// Utterances: who said what, what it earned, what could have been said.

import { count, h, number } from "./dom.js";

const MINE = { system: "system", user: "user" };

export function pieces(turn) {
  return (turn.pieces || [[turn.text, ""]]).map(([text, style]) => (style ? h(`span.${style}`, null, text) : text));
}

export function reward(value) {
  if (value === null || value === undefined) return null;
  const sign = value > 0 ? "plus" : value < 0 ? "minus" : "none";
  return h(`span.reward.${sign}`, { title: "reward" }, `${value > 0 ? "+" : ""}${number(value)}`);
}

// One utterance. `more` is what a replay says of it; `extra` stands below.
export function utterance(turn, { more = {}, extra = null, mark = false, learner = "", told = false } = {}) {
  const kind = MINE[turn.party] || "other";
  const side = turn.party === learner || turn.said ? "own" : "others";
  const head = h("div.who", null, h("span.name", null, turn.party),
    turn.private || told ? h("span.tag", null, "in private") : null,
    more.act ? h("span.tag.act", null, more.act) : null,
    turn.said ? reward(turn.reward) : null);
  return h(`div.turn.${kind}.${side}${turn.private || told ? ".private" : ""}${mark ? ".mark" : ""}`, null,
    head, h("div.bubble", null, pieces(turn)), details(turn, more), extra);
}

function details(turn, more) {
  const parts = more.components || turn.components || {};
  const found = Object.entries(parts).map(([name, value]) => h("span.part", null, `${name} `, h("b", null, number(value))));
  if (more.value !== undefined) found.push(h("span.part", { title: "the learner's estimate before this turn" }, "value ", h("b", null, number(more.value))));
  if (more.advantage !== undefined) found.push(h("span.part", { title: "Q − V of this turn" }, "advantage ", h("b", null, number(more.advantage))));
  if (more.bits !== undefined && more.bits !== null) found.push(h("span.part", { title: "entropy of what is hidden, before this turn" }, h("b", null, number(more.bits, 1)), " bits open"));
  return found.length || more.allowed || more.acts ? h("div.parts", null, found, masks(more)) : null;
}

// What could have been said, by character, or by act.
function masks(more) {
  if (more.acts) {
    return h("details.masks", null, h("summary", null, `${more.acts.length} acts allowed`),
      h("div.chips", null, more.acts.map((name) => h(`span.chip${name === more.act ? ".on" : ""}`, null, name))));
  }
  if (!more.allowed) return null;
  const rows = more.allowed.map((step) => h("tr", null,
    h("td", null, step.char === "" ? "end" : step.char === " " ? "␣" : step.char),
    h("td", null, step.next === null ? "anything" : step.next === "" ? (step.end ? "only the end" : "nothing") : ranges(step.next), step.end && step.next ? " or the end" : "")));
  return h("details.masks", null, h("summary", null, "what was allowed"),
    h("table", null, h("thead", null, h("tr", null, h("th", null, "said"), h("th", null, "allowed there"))), h("tbody", null, rows)));
}

// "abcdxyz" as "a–d x–z".
export function ranges(letters) {
  const found = [];
  for (const letter of letters) {
    const last = found[found.length - 1];
    if (last && letter.charCodeAt(0) === last[1].charCodeAt(0) + 1) last[1] = letter;
    else found.push([letter, letter]);
  }
  const name = (letter) => (letter === " " ? "␣" : letter);
  return found.map(([a, b]) => {
    if (a === b) return name(a);
    return b.charCodeAt(0) - a.charCodeAt(0) === 1 ? `${name(a)} ${name(b)}` : `${name(a)}–${name(b)}`;
  }).join(" ");
}

// Guesses and colours of Wordle, from its turns.
export function guesses(turns) {
  const found = [];
  turns.forEach((turn, place) => {
    const answer = turns[place + 1];
    if (turn.party !== "system" || !answer || answer.party !== "user") return;
    const colours = answer.text.split(" ");
    const painted = colours.length === 5 && colours.every((colour) => "gyb".includes(colour));
    found.push({ word: turn.text, colours: painted ? colours : null });
  });
  return found;
}

export const COLOURS = { g: "right", y: "near", b: "absent" };

export function board(turns, { rows = 6, typed = "", small = false } = {}) {
  const made = guesses(turns);
  const lines = made.map(({ word, colours }) => Array.from({ length: 5 }, (_, i) =>
    tile(word[i] || "", colours ? COLOURS[colours[i]] : "invalid")));
  if (lines.length < rows && typed !== null) lines.push(Array.from({ length: 5 }, (_, i) => tile(typed[i] || "", typed[i] ? "typed" : "")));
  while (lines.length < rows) lines.push(Array.from({ length: 5 }, () => tile("", "")));
  const said = made.map(({ word, colours }) => `${word} ${colours ? colours.map((c) => COLOURS[c]).join(" ") : "no word"}`);
  return h(`div.board${small ? ".small" : ""}`, { role: "img", "aria-label": said.join("; ") || "no guesses yet" }, lines.map((line) => h("div.line", null, line)));
}

function tile(letter, kind) {
  return h(`span.tile${kind ? `.${kind}` : ""}`, null, letter.slice(0, 1));
}

export function verdict(dialogue) {
  return h("div.chips", null,
    h(`span.chip.${dialogue.success ? "good" : "poor"}`, null, dialogue.success ? "✓ success" : "✗ no success"),
    h("span.chip", null, "return ", h("b", null, number(dialogue.return))),
    h("span.chip", null, count(dialogue.length, "turn")),
    dialogue.truncated ? h("span.chip", { title: "a limit cut it short" }, "truncated") : null);
}
