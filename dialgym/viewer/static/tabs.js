import { count, h } from "./dom.js";

// Tabs of the sources of one kind.
export function tabs(site, kind, current) {
  const found = site.sources.filter((source) => source.kind === kind);
  if (found.length < 2) return null;
  const page = { dialogues: "data", run: "run", results: "results" }[kind];
  return h("div.tabs", null, found.map((source) =>
    h("a", { href: `#/${page}/${source.number}`, title: source.path, "aria-current": source.number === current ? "page" : null },
      source.name, source.dialogues === undefined ? null : h("small", null, count(source.dialogues, "dialogue")))));
}
