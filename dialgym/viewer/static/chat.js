// Talk to the language model or agent of `--model`.

import { post, trying } from "./api.js";
import { add, h, show } from "./dom.js";
import { utterance } from "./turns.js";

export async function chat({ place }) {
  let history = [];
  const talk = h("div.turns.talk", { "aria-live": "polite" });
  const input = h("textarea", { rows: 2, name: "text", placeholder: "say something", "aria-label": "Say", onkeydown: (event) => { if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); say(); } } });
  const button = h("button.primary", { type: "submit" }, "Say");

  function draw(waiting = null) {
    const lines = history.map((text, i) => ({ party: i % 2 ? "system" : "user", text, said: i % 2 === 0, reward: null }));
    if (waiting !== null) lines.push({ party: "user", text: waiting, said: true, reward: null }, { party: "system", text: "…", said: false });
    show(talk, lines.length ? lines.map((line) => utterance(line, { learner: "user" })) : h("p.empty", null, "You have the first word."));
    talk.scrollTop = talk.scrollHeight;
  }

  async function say() {
    const text = input.value.trim();
    if (!text || button.disabled) return;
    button.disabled = true;
    draw(text);
    const found = await trying(() => post("chat", { text, history }));
    button.disabled = false;
    if (found) { history = [...history, text, found.reply]; input.value = ""; }
    draw();
    input.focus();
  }

  add(place, h("h1", null, "Chat"), talk, h("form.say", { onsubmit: (event) => { event.preventDefault(); say(); } }, h("div.line", null, input, button),
    h("div.actions", null, h("button.quiet", { type: "button", onclick: () => { history = history.slice(0, -2); draw(); } }, "Take back"), h("button.quiet", { type: "button", onclick: () => { history = []; draw(); } }, "Begin anew"))));
  draw();
}
