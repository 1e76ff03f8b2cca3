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

// Leaves empty fields out of the address of a list.
for (const form of document.querySelectorAll("main form[method=get]")) {
  form.addEventListener("formdata", (event) => {
    for (const [name, value] of [...event.formData]) if (value === "") event.formData.delete(name);
  });
}
