// Calls of the reference. The key is kept in the tab's sessionStorage and sent in a header of calls to this service.
const STORE = "reference-key";
const LONGEST = 200_000;
const values = document.getElementById("reference").dataset;
const box = document.getElementById("key");
const forget = document.getElementById("forget");

function remember() {
  const key = box.value.trim();
  if (key) sessionStorage.setItem(STORE, key);
  else sessionStorage.removeItem(STORE);
  forget.hidden = !key;
}

if ("new" in box.dataset) {
  // The page came from a form. Reloading it must not send the form again.
  history.replaceState(null, "", "/docs" + location.hash);
} else {
  box.value = sessionStorage.getItem(STORE) ?? "";
}
remember();
box.addEventListener("input", remember);
forget.addEventListener("click", () => { box.value = ""; remember(); box.focus(); });

// JSON with a member a line. Numbers stay as they were sent: none passes through a binary float.
function indented(json) {
  let depth = 0;
  const line = () => "\n" + "  ".repeat(depth);
  return json.replace(/"(?:\\.|[^"\\])*"|[{[]\s*[}\]]|[{}[\],:]|\s+/g, (part) => {
    if (part[0] === '"' || /^[{[]\s*[}\]]$/.test(part)) return part;
    if (part === "{" || part === "[") { depth += 1; return part + line(); }
    if (part === "}" || part === "]") { depth -= 1; return line() + part; }
    if (part === ",") return part + line();
    return part === ":" ? ": " : "";
  });
}

function addressOf(form) {
  const query = [];
  let path = form.dataset.path;
  for (const field of form.elements) {
    if (!field.name || !field.value.trim()) continue;
    const value = field.value.trim();
    if (field.dataset.in === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(value));
    else query.push(`${field.name}=${encodeURIComponent(value).replaceAll("%2C", ",")}`);
  }
  return location.origin + path + (query.length ? "?" + query.join("&") : "");
}

async function call(form) {
  const reply = form.parentElement.querySelector(".reply");
  const [outcome, result] = [reply.querySelector(".outcome"), reply.querySelector(".result")];
  const needsKey = !("open" in form.dataset);
  const key = box.value.trim();
  const missing = [...form.elements].find((field) => field.dataset.in === "path" && !field.value.trim());
  reply.hidden = false;
  reply.dataset.status = "";
  if (missing) {
    result.hidden = true;
    outcome.textContent = `Fill in ${missing.name} first.`;
    missing.focus();
    return;
  }
  if (needsKey && !key) {
    result.hidden = true;
    outcome.textContent = "This call needs a key: enter one in the field “API key” above. ";
    const link = document.createElement("a");
    link.href = "#key";
    link.textContent = "Go to the field";
    link.addEventListener("click", (event) => { event.preventDefault(); box.scrollIntoView({ block: "center" }); box.focus(); });
    outcome.append(link);
    return;
  }
  const address = addressOf(form);
  const body = form.querySelector("[data-in=body]")?.value;
  const data = body === undefined ? "" : ` \\\n  -H "Content-Type: application/json" -d '${body.replaceAll("'", "'\\''")}'`;
  result.querySelector(".command").textContent =
    `curl -s '${address.replaceAll("'", "%27")}'` + (needsKey ? ` \\\n  -H "Authorization: Bearer $DDS_API_KEY"` : "") + data;
  outcome.textContent = "Waiting for the answer…";
  const started = performance.now();
  try {
    const headers = {
      ...(needsKey && { Authorization: `Bearer ${key}` }),
      ...(data && { "Content-Type": "application/json" }),
    };
    const method = data ? "POST" : "GET";
    const answer = await fetch(address, { method, body, headers, credentials: "omit", cache: "no-store" });
    const text = await answer.text();
    const took = Math.round(performance.now() - started);
    const isJson = (answer.headers.get("content-type") ?? "").includes("json");
    const shown = isJson && text.length <= LONGEST ? indented(text) : text;
    const left = answer.headers.get("x-quota-remaining");
    result.querySelector(".answer").textContent =
      shown.length > LONGEST ? `${shown.slice(0, LONGEST)}\n… ${shown.length - LONGEST} more characters` : shown;
    outcome.textContent = `${answer.status} ${answer.statusText} in ${took} ms` + (left ? `, ${Number(left).toLocaleString("en")} calls left this month` : "");
    reply.dataset.status = answer.status;
    result.hidden = false;
  } catch (error) {
    result.hidden = true;
    outcome.textContent = `The service did not answer (${error.message}). Try again.`;
  }
}

for (const form of document.querySelectorAll("form.call")) {
  for (const field of form.querySelectorAll("[data-kind]")) {
    field.value = values[field.dataset.kind] || field.value;
  }
  form.querySelector("button[type=submit]").hidden = false;
  form.addEventListener("submit", (event) => { event.preventDefault(); call(form); });
}

// An address with an endpoint's name opens it, and an open endpoint has its address.
function openNamed() {
  const named = document.getElementById(location.hash.slice(1));
  if (named?.matches("details.endpoint")) { named.open = true; named.scrollIntoView(); }
}
for (const endpoint of document.querySelectorAll("details.endpoint")) {
  endpoint.addEventListener("toggle", () => { if (endpoint.open) history.replaceState(null, "", "#" + endpoint.id); });
}
addEventListener("hashchange", openNamed);
openNamed();
