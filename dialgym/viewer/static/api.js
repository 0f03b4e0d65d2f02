// What the page asks of the viewer; an error is shown where it can be read.

export class Failure extends Error {}

async function ask(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch {
    throw new Failure("The viewer does not answer. Is `dialgym view` still running?");
  }
  const found = await response.json().catch(() => ({ detail: `status ${response.status}` }));
  if (!response.ok) throw new Failure(found.detail || `status ${response.status}`);
  return found;
}

export function get(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const text = new URLSearchParams(given).toString();
  return ask(`/api/${path}${text ? `?${text}` : ""}`);
}

export function post(path, body = {}) {
  return ask(`/api/${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
}

let timer;
export function notice(text, bad = false) {
  const place = document.getElementById("notice");
  place.textContent = text;
  place.className = bad ? "shown bad" : "shown";
  clearTimeout(timer);
  timer = setTimeout(() => { place.className = ""; }, bad ? 8000 : 3000);
}

// Do something that may fail, and say so where it does.
export async function trying(action) {
  try {
    return await action();
  } catch (error) {
    notice(error.message, true);
    if (!(error instanceof Failure)) throw error;
    return undefined;
  }
}
