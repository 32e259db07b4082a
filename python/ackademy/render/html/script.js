"use strict";
// Readings under the pointer. Everything else on the page works without this.
const tip = document.body.appendChild(document.createElement("div"));
tip.id = "tip";

function show(text, x, y) {
  tip.textContent = text;
  tip.style.display = "block";
  const box = tip.getBoundingClientRect();
  const left = x + 14 + box.width > innerWidth ? x - 14 - box.width : x + 14;
  const top = y + 14 + box.height > innerHeight ? y - 14 - box.height : y + 14;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, top)}px`;
}

function hide() {
  tip.style.display = "none";
}

for (const target of document.querySelectorAll("[data-tip]")) {
  // The tip says what the title says; without this script the title is there.
  target.setAttribute("aria-label", target.dataset.tip);
  target.setAttribute("role", "img");
  target.setAttribute("tabindex", "0");
  target.querySelector("title")?.remove();
  target.addEventListener("pointermove", (event) => show(target.dataset.tip, event.clientX, event.clientY));
  target.addEventListener("pointerleave", hide);
  target.addEventListener("focus", () => {
    const box = target.getBoundingClientRect();
    show(target.dataset.tip, box.left + box.width / 2, box.bottom);
  });
  target.addEventListener("blur", hide);
}

// A heading sorts its table's rows: numbers from the largest, names from A; once more turns it round.
for (const heading of document.querySelectorAll(".sortable th[data-sort]")) {
  heading.tabIndex = 0;
  const sort = () => {
    const column = heading.cellIndex;
    const body = heading.closest("table").tBodies[0];
    const rows = [...body.rows];
    const value = (row) => row.cells[column].dataset.v ?? "";
    const numeric = rows.every((row) => value(row) === "" || !Number.isNaN(Number(value(row))) || value(row) === "nan");
    const before = heading.getAttribute("aria-sort");
    const ascending = before ? before === "descending" : !numeric;
    const number = (row) => (value(row) === "" || value(row) === "nan" ? -Infinity : Number(value(row)));
    rows.sort((a, b) => (numeric ? number(a) - number(b) : value(a).localeCompare(value(b))));
    if (!ascending) rows.reverse();
    for (const other of heading.parentElement.cells) other.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    body.append(...rows);
  };
  heading.addEventListener("click", sort);
  heading.addEventListener("keydown", (event) => {
    if (event.key === "Enter") sort();
  });
}

// A line's points are its path: M and L followed by places on a 1000 by 1000 grid.
function points(path) {
  path.places ??= [...path.getAttribute("d").matchAll(/[ML](-?\d+) (-?\d+)/g)].map((m) => [+m[1], +m[2]]);
  return path.places;
}

function nearest(places, across) {
  let low = 0;
  let high = places.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (places[middle][0] < across) low = middle + 1;
    else high = middle;
  }
  const before = places[Math.max(low - 1, 0)];
  return across - before[0] < places[low][0] - across ? before : places[low];
}

const digits = (value) => String(Number(value.toPrecision(3)));

for (const drawing of document.querySelectorAll("svg[data-x]")) {
  const [x0, x1] = drawing.dataset.x.split(",").map(Number);
  const [y0, y1] = drawing.dataset.y.split(",").map(Number);
  const cursor = document.createElement("div");
  cursor.className = "cursor";
  cursor.hidden = true;
  drawing.parentElement.append(cursor);
  drawing.addEventListener("pointermove", (event) => {
    const box = drawing.getBoundingClientRect();
    const part = (event.clientX - box.left) / box.width;
    const rows = [...drawing.querySelectorAll(".line")].filter((path) => points(path).length).map((path) => {
      const [, down] = nearest(points(path), 1000 * part);
      return `${path.dataset.name} ${digits(y0 + (1 - down / 1000) * (y1 - y0))} ${path.dataset.unit}`;
    });
    cursor.hidden = false;
    cursor.style.left = `${100 * part}%`;
    show([`${digits(x0 + part * (x1 - x0))} s`, ...rows].join("\n"), event.clientX, event.clientY);
  });
  drawing.addEventListener("pointerleave", () => {
    cursor.hidden = true;
    hide();
  });
}
