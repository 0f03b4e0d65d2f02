// Which of two replies is better? The names of the policies are told once the verdict is given.

import { get, notice, post, trying } from "./api.js";
import { add, h, show } from "./dom.js";
import { last, sides } from "./sides.js";
import { board, utterance } from "./turns.js";

export async function rate({ place, site, query, onkey }) {
  const below = h("section.rate", { "aria-live": "polite" });
  const given = [];
  let now = null;
  add(place, h("h1", null, "Rate replies"),
    h("p.about", null, "Two policies in the same situation. Which reply is better? Verdicts are kept in ", h("code", null, `${site.ratings.folder}/preferences.jsonl`), ", which ", h("code", null, "dialgym train reward-model --data"), " reads."),
    sides(site, query, () => { given.length = 0; next(); }), below);

  async function next(told = null) {
    const found = await trying(() => get(`rate/${last.found.comparison}`));
    if (!found) return;
    now = found.next;
    const progress = h("div.progress", null, h("progress", { max: found.total || 1, value: found.done, "aria-label": "rated" }),
      h("span", null, `${found.done} of ${found.total} rated`), told ? h("span.told", null, told) : null,
      given.length ? h("button.quiet", { type: "button", onclick: undo }, "Take back (u)") : null);
    if (!now) {
      show(below, progress, h("div.card.empty", null, h("p", null, found.total ? "All rated. Thank you." : "These two never say different things in the same situation: there is nothing to compare.")));
      return;
    }
    const wordle = now.turns.length && now.turns.every((turn) => turn.pieces) && site.envs.length && /^[a-z]{5}$/.test(now.replies[0]) && now.turns.some((turn) => /^[gyb]( [gyb]){4}$/.test(turn.text));
    show(below, progress,
      h("div.card.context", null, now.turns.length ? null : h("p.empty", null, "The dialogue begins here."),
        wordle ? board(now.turns, { typed: null, rows: 0, small: true }) : now.turns.map((turn) => utterance({ ...turn, reward: null }))),
      h("div.two", null, now.replies.map((text, i) => h("button.reply", { type: "button", onclick: () => prefer(i ? "right" : "left") },
        h("kbd", null, i + 1), h("span.text", null, text === "" ? "(nothing)" : text)))),
      h("div.actions", null, h("button.quiet", { type: "button", onclick: () => prefer("tie") }, h("kbd", null, 3), " neither is better")));
  }

  async function prefer(verdict) {
    if (!now) return;
    const pair = now.number;
    now = null;
    const found = await trying(() => post(`rate/${last.found.comparison}`, { pair, verdict }));
    if (!found) { await next(); return; }
    given.push(found.key);
    await next(`kept: left was ${found.left}, right ${found.right}`);
  }

  async function undo() {
    const key = given.pop();
    if (key && await trying(() => post("unrate", { key }))) { notice("Taken back."); await next(); }
  }

  onkey({ 1: () => prefer("left"), 2: () => prefer("right"), 3: () => prefer("tie"), ArrowLeft: () => prefer("left"), ArrowRight: () => prefer("right"), ArrowDown: () => prefer("tie"), u: undo });
  if (last.found) await next();
}
