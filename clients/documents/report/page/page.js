// A button in the head of each column sorts its table: numbers by data-value, words by their
// letters. Without this script the tables are complete, and in the order of the scoreboard.
"use strict";

const valueOf = (row, column) => {
  const cell = row.cells[column];
  return "value" in cell.dataset ? Number(cell.dataset.value) : cell.textContent.trim();
};

// Cells without a number come last, whichever way the others are sorted.
const compare = (a, b, sign) => {
  const numbers = typeof a === "number" || typeof b === "number";
  if (!numbers)
    return sign * a.localeCompare(b, "en", { numeric: true });
  const known = [a, b].map((v) => typeof v === "number" && !Number.isNaN(v));
  return known[0] && known[1] ? sign * (a - b) : known[1] - known[0];
};

const sortBy = (table, head) => {
  const descending = head.getAttribute("aria-sort") === "ascending";
  for (const other of table.tHead.rows[0].cells)
    other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const body = table.tBodies[0];
  const rows = Array.from(body.rows, (row) => [valueOf(row, head.cellIndex), row]);
  rows.sort((a, b) => compare(a[0], b[0], descending ? -1 : 1));
  body.append(...rows.map(([, row]) => row));
};

for (const table of document.querySelectorAll("table.sortable"))
  for (const head of table.tHead.rows[0].cells) {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    button.addEventListener("click", () => sortBy(table, head));
    head.append(button);
  }
