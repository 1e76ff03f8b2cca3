// A click on a heading sorts its table: numbers by value, all else by text; a second click turns the order around.
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => {
    const heading = button.parentElement;
    const table = heading.closest("table");
    const place = heading.cellIndex;
    const down = heading.getAttribute("aria-sort") === "ascending";
    for (const other of table.querySelectorAll("th")) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = (row) => row.cells[place].textContent;
    const compare = (a, b) => {
      const numbers = [Number(a), Number(b)];
      return a !== "" && b !== "" && numbers.every(Number.isFinite) ? numbers[0] - numbers[1] : a.localeCompare(b);
    };
    const body = table.tBodies[0];
    const rows = [...body.rows].sort((a, b) => compare(value(a), value(b)));
    body.append(...(down ? rows.reverse() : rows));
  });
}
