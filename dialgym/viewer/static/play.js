// A person plays a party, against a simulator or an agent.

import { get, notice, post, trying } from "./api.js";
import { add, choice, field, h, number, show } from "./dom.js";
import { COLOURS, board, guesses, utterance } from "./turns.js";

const KEYBOARD = ["qwertyuiop", "asdfghjkl", "zxcvbnm"];

export async function play({ place, site, query, onkey }) {
  const envs = [...new Set(site.envs.map((env) => env.env.replace("dialgym/", "")))];
  const state = { env: query.get("env") || "Wordle-v0", party: query.get("party") || "system", against: "", options: "", seed: query.get("seed") || "" };
  const setup = h("form"), name = h("summary");
  const box = h("details.card.setup", { open: matchMedia("(min-width: 800px)").matches }, name, setup);
  const rules = h("details.rules"), table = h("section.table");
  const seat = new Seat(table, onkey);
  add(place, h("h1", null, "Play"), box, rules, table);
  setup.addEventListener("submit", (event) => { event.preventDefault(); begin(); });

  async function begin() {
    const found = await trying(() => post("games", { ...state, seed: state.seed === "" ? null : Number(state.seed) }));
    if (found) seat.sit(found, begin);
  }

  async function choose() {
    const about = await trying(() => get("about", { env: state.env }));
    if (!about) return false;
    if (!about.parties.includes(state.party)) [state.party] = about.parties;
    const other = about.parties.find((party) => party !== state.party);
    const against = [...about.speakers[other], ...about.runs];
    if (!against.includes(state.against)) state.against = "";
    const set = (name, redraw = false) => (event) => { state[name] = event.target.value.trim(); if (redraw) start(); };
    show(name, `${state.env}, you are the ${state.party}`);
    show(setup, h("datalist", { id: "ids" }, envs.map((env) => h("option", { value: env }))), h("div.filters", null,
      field("environment", h("input", { name: "env", list: "ids", value: state.env, required: true, onchange: set("env", true) })),
      field("you are", choice(about.parties, state.party, { name: "party", onchange: set("party", true) })),
      field(`the ${other} is`, choice([["", "the default"], ...against], state.against, { name: "against", onchange: set("against") })),
      about.options.length ? field("fixed", h("input", { name: "options", placeholder: `${about.options[0]}=…`, value: state.options, onchange: set("options") })) : null,
      field("seed", h("input.short", { name: "seed", type: "number", min: 0, placeholder: "any", value: state.seed, onchange: set("seed") })),
      h("button.primary", { type: "submit" }, "New dialogue")));
    show(rules, h("summary", null, `Rules: ${about.description}`), about.stand_in ? h("p.note", null, `Built-in data stands in for the original here (${about.stand_in}).`) : null, h("pre.rules", null, about.about));
    return true;
  }

  async function start() {
    history.replaceState(null, "", `#/play?${new URLSearchParams({ env: state.env, party: state.party })}`);
    if (await choose()) await begin();
  }
  await start();
}

// A dialogue under way.
class Seat {
  constructor(place, onkey) {
    this.place = place;
    this.typed = "";
    onkey({ any: (event) => this.key(event) });
  }

  sit(game, again) {
    this.again = again;
    this.refused = null;
    this.forget();
    this.update(game);
    if (this.wordle) document.activeElement?.blur(); // keys go to the board
  }

  // What was meant for the turn before.
  forget() {
    this.typed = "";
    this.hinted = null;
  }

  get wordle() { return this.game.task === "Wordle" && this.game.learner === "system"; }

  // The answers of one dialogue: its number is in the first alone.
  update(game) {
    this.game = { game: this.game?.game, ...game };
    this.draw();
  }

  async send(body) {
    const found = await trying(() => post(`games/${this.game.game}/say`, body));
    if (!found) return;
    this.refused = found.refused ?? null;
    this.doubt = found.doubt ?? "";
    if (this.refused === null) this.forget();
    else if (this.wordle) notice("Not in the list of words. Enter once more to say it all the same.");
    this.update(found);
  }

  say(text) {
    const sure = this.refused !== null && text.trim().toLowerCase() === this.refused.toLowerCase();
    return this.send({ text, sure });
  }

  async judge(served) {
    if (await trying(() => post(`games/${this.game.game}/judge`, { served }))) this.game.served = served;
    this.draw();
  }

  async undo() {
    const found = await trying(() => post(`games/${this.game.game}/undo`));
    if (found) { this.refused = null; this.forget(); this.update(found); }
  }

  async hint() {
    const found = await trying(() => get(`games/${this.game.game}/hint`));
    if (!found) return;
    this.hinted = found.hint;
    if (!this.wordle) this.typed = found.hint;
    this.draw();
  }

  // Typing at the board, without a field.
  key(event) {
    if (!this.game || !this.wordle || this.game.over || event.target.tagName === "BUTTON") return false;
    if (/^[a-zA-Z]$/.test(event.key)) this.type(event.key.toLowerCase());
    else if (event.key === "Backspace") this.type("back");
    else if (event.key === "Enter") this.type("enter");
    else return false;
    return true;
  }

  type(key) {
    if (key === "enter") { if (this.typed.length === 5) this.say(this.typed); else notice("Five letters, please."); return; }
    this.typed = key === "back" ? this.typed.slice(0, -1) : (this.typed + key).slice(0, 5);
    this.refused = key === "back" ? null : this.refused;
    this.draw();
  }

  draw() {
    const { game } = this;
    const scene = h("div.scene");
    show(this.place, h("div.status", null, this.status()), scene, this.wordle ? this.drawBoard() : this.drawTalk(), game.over ? this.drawEnd() : null);
    if (game.picture && !this.wordle) get(`games/${game.game}/picture`).then((found) => { if (found.picture) show(scene, h("img", { src: found.picture, alt: "the picture that this dialogue is about" })); }).catch(() => {});
    if (!this.wordle) {
      const talk = this.place.querySelector(".turns");
      talk.scrollTop = talk.scrollHeight;
      this.place.querySelector("textarea")?.focus({ preventScroll: true });
    }
  }

  status() {
    const { game } = this;
    return [
      h("span.chip", null, `you are the ${game.learner}`), h("span.chip", null, `${game.left} of ${game.left + game.turn} turns left`),
      h("span.chip", null, "return ", h("b", null, number(game.return))), h("span.chip", null, `seed ${game.seed}`),
      h("div.buttons", null,
        game.undo ? h("button.quiet", { type: "button", onclick: () => this.undo() }, "Take back") : null,
        game.over ? null : h("button.quiet", { type: "button", onclick: () => this.hint() }, "Hint")),
      this.hinted === null ? null : h("span.chip.hint", null, `an expert would say: ${this.hinted}`),
    ];
  }

  drawBoard() {
    const { game } = this;
    const known = {};
    for (const { word, colours } of guesses(game.turns)) {
      (colours || []).forEach((colour, i) => {
        const order = ["b", "y", "g"];
        if (order.indexOf(colour) > order.indexOf(known[word[i]])) known[word[i]] = colour;
      });
    }
    const key = (name, text = name, wide = false) => h(`button.key${wide ? ".wide" : ""}${known[name] ? `.${COLOURS[known[name]]}` : ""}`, { type: "button", disabled: game.over, "data-key": name, "aria-label": name, onclick: () => this.type(name) }, text);
    return h("div.wordle", null, board(game.turns, { rows: Math.min(12, game.turn + game.left), typed: game.over ? null : this.typed }),
      h("div.keyboard", null, KEYBOARD.map((row, i) => h("div", null, i === 2 ? key("enter", "enter", true) : null, [...row].map((letter) => key(letter)), i === 2 ? key("back", "⌫", true) : null))));
  }

  drawTalk() {
    const { game } = this;
    const shown = game.turns.map((turn) => utterance(turn, { learner: game.learner }));
    const talk = h("div.turns.talk", { "aria-live": "polite" }, shown.length ? shown : h("p.empty", null, "You have the first word."));
    return game.over ? talk : [talk, this.drawInput()];
  }

  drawInput() {
    const { game } = this;
    const input = h("textarea", {
      rows: 2, name: "text", value: this.typed, placeholder: `what the ${game.learner} says`, "aria-label": "Say", maxLength: Math.max(game.longest || 1, 1),
      oninput: (event) => { this.typed = event.target.value; },
      onkeydown: (event) => { if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); this.say(input.value); } },
    });
    const words = (game.words || []).slice(0, 60);
    return h("form.say", { onsubmit: (event) => { event.preventDefault(); this.say(input.value); } },
      this.refused === null ? null : h("p.note.bad", null, `The rules do not foresee “${this.refused}” here. ${this.doubt} Say it once more to mean it.`),
      h("div.line", null, input, h("button.primary", { type: "submit" }, "Say")),
      words.length ? h("details.choices", null, h("summary", null, `${game.words.length} texts are allowed`), h("div.chips", null, words.map((word) => h("button.chip", { type: "button", onclick: () => this.say(word) }, word)))) : null,
      game.acts ? h("details.choices", { open: true }, h("summary", null, "or choose an act"), h("div.chips", null, game.acts.filter((act) => act.allowed).map((act) => h("button.chip.act", { type: "button", onclick: () => this.send({ act: act.number }) }, act.name)))) : null);
  }

  drawEnd() {
    const { game } = this;
    const hidden = game.hidden.map((line) => h(`p.${line.party}`, null, h("span.name", null, `${line.party}, in private: `), line.text));
    return h(`div.card.end.${game.success ? "good" : "poor"}`, null,
      h("h2", null, game.success ? "Solved." : "Not solved."),
      h("p", null, `${game.turn} ${game.turn === 1 ? "turn" : "turns"}, return ${number(game.return)}.`), hidden,
      game.kept ? h("p.note", null, `Kept as ${game.kept}`) : null,
      this.wordle ? null : h("div.buttons", null, h("span", null, game.learner === "user" ? "Did you get all that you wanted?" : "Did the user get all that it wanted?"),
        [["Yes", true], ["No", false]].map(([name, served]) => h("button.quiet", { type: "button", "aria-pressed": String(game.served === served), onclick: () => this.judge(served) }, name))),
      h("button.primary", { type: "button", onclick: () => this.again() }, "Another one"));
  }
}
