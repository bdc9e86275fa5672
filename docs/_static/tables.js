// Tables of results: a click on a column's head sorts by it, a second one turns it round.
const MIN_ROWS = 4;
const number = (cell) => parseFloat(cell.textContent.replace(/[,\s]/g, ""));
const compare = (column) => (a, b) => {
  const [x, y] = [a.cells[column], b.cells[column]];
  const [p, q] = [number(x), number(y)];
  if (!isNaN(p) && !isNaN(q)) return p - q;
  return x.textContent.localeCompare(y.textContent, undefined, { numeric: true });
};

document.querySelectorAll("article table").forEach((table) => {
  const body = table.tBodies[0];
  if (!table.tHead || !body || body.rows.length < MIN_ROWS) return;
  table.classList.add("sortable");
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const rows = [...body.rows].sort(compare(column));
      body.append(...(down ? rows.reverse() : rows));
    });
  });
});
