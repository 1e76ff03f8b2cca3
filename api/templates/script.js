const REFERENCE_KEY = "reference-key";

// Copies a secret or a call. Without it they are marked and copied by hand.
for (const button of document.querySelectorAll("button[data-copy]")) {
  const source = document.getElementById(button.dataset.copy);
  if (!source || !navigator.clipboard) continue;
  const title = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = title; }, 2000);
  });
}

// Takes a secret along to the reference, for this tab alone.
for (const link of document.querySelectorAll("a[data-use]")) {
  link.hidden = false;
  link.addEventListener("click", () => {
    sessionStorage.setItem(REFERENCE_KEY, document.getElementById(link.dataset.use).textContent);
  });
}

// The key of the reference ends with the session.
for (const form of document.querySelectorAll("form[action='/sign-out'], form[action='/dashboard/delete']")) {
  form.addEventListener("submit", () => sessionStorage.removeItem(REFERENCE_KEY));
}

// A slash leads to the search of the header, except where text is entered.
document.addEventListener("keydown", (event) => {
  const field = document.querySelector(".search input");
  const isTyping = event.target.matches("input, textarea, select");
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey || !field) return;
  event.preventDefault();
  field.focus();
});

// Shows the value of a chart at the pointer, and moves to the next one with the arrow keys. Without it, the browser shows
// each value as a tooltip, and a table has the values.
for (const chart of document.querySelectorAll("svg.values")) {
  const values = [...chart.querySelectorAll(".hit")];
  const reading = chart.closest("figure").querySelector(".reading");
  if (!values.length) continue;
  const width = chart.querySelector("svg").viewBox.baseVal.width;
  const centers = values.map((value) => value.x.baseVal.value + value.width.baseVal.value / 2);
  let chosen = values.length - 1;
  const choose = (index) => {
    values[chosen].classList.remove("chosen");
    chosen = Math.max(0, Math.min(values.length - 1, index));
    values[chosen].classList.add("chosen");
    reading.textContent = values[chosen].textContent;
    chart.setAttribute("aria-valuenow", chosen);
    chart.setAttribute("aria-valuetext", reading.textContent);
  };
  const follow = (event) => {
    const box = chart.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width * width;
    const later = centers.findIndex((center) => center >= x);
    const nearer = later > 0 && x - centers[later - 1] < centers[later] - x ? later - 1 : later;
    choose(later < 0 ? values.length - 1 : nearer);
  };
  const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -12, PageDown: 12, Home: -values.length, End: values.length };
  chart.setAttribute("role", "slider");
  chart.setAttribute("tabindex", "0");
  chart.setAttribute("aria-valuemin", 0);
  chart.setAttribute("aria-valuemax", values.length - 1);
  chart.setAttribute("aria-valuenow", chosen);
  chart.setAttribute("aria-valuetext", reading.textContent);
  chart.addEventListener("pointerdown", follow);
  chart.addEventListener("pointermove", follow);
  chart.addEventListener("keydown", (event) => {
    if (!(event.key in steps)) return;
    event.preventDefault();
    choose(chosen + steps[event.key]);
  });
}

// Leaves empty fields out of the address of a list.
for (const form of document.querySelectorAll("main form[method=get]")) {
  form.addEventListener("formdata", (event) => {
    for (const [name, value] of [...event.formData]) if (value === "") event.formData.delete(name);
  });
}
