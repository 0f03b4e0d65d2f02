// Elements are made of texts, never of markup: what a dialogue says stays text.

export function h(name, attributes, ...children) {
  const [tag, ...classes] = name.split(".");
  const element = document.createElement(tag || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && key !== "list") element[key] = value;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child || child === 0).map(node));
  return element;
}

function node(child) {
  return child instanceof Node ? child : document.createTextNode(String(child));
}

export function svg(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes || {})) element.setAttribute(key, value);
  element.append(...children.flat().filter(Boolean).map(node));
  return element;
}

export function add(place, ...children) {
  place.append(...children.flat(Infinity).filter(Boolean).map(node));
}

export function show(place, ...children) {
  place.replaceChildren(...children.flat(Infinity).filter(Boolean).map(node));
}

export function number(value, digits = 2) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const text = Number.isInteger(value) ? String(value) : Number(value).toFixed(digits);
  return text.replace("-", "−");
}

export function percent(value) {
  return value === null || value === undefined ? "–" : `${(100 * value).toFixed(0)}\u00a0%`;
}

export function count(value, one, many = `${one}s`) {
  return `${Number(value).toLocaleString("en")} ${value === 1 ? one : many}`;
}

// A labelled field of a form.
export function field(label, input, hint) {
  return h("label.field", null, h("span", null, label), input, hint ? h("small", null, hint) : null);
}

export function choice(options, value, attributes = {}) {
  const select = h("select", attributes);
  for (const option of options) {
    const [key, text] = Array.isArray(option) ? option : [option, option];
    select.append(h("option", { value: key, selected: String(key) === String(value) }, text));
  }
  return select;
}

// Buttons of which one is pressed.
export function switcher(options, value, chosen) {
  return h("div.switcher", { role: "group" }, options.map(([key, text]) =>
    h("button", { type: "button", "aria-pressed": String(key === value), onclick: () => chosen(key) }, text)));
}
