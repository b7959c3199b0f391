// What every report needs: packed data, theme, sortable tables. One name is shared with the other scripts.
const HopBench = (() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const json = (id) => JSON.parse(byId(id).textContent);

  // Text only: nothing from a corpus is ever read as HTML.
  function el(tag, properties = {}, ...children) {
    const node = document.createElement(tag);
    for (const [key, value] of Object.entries(properties)) {
      if (key in node) node[key] = value;
      else node.setAttribute(key, value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }

  async function unpack(id) {
    const bytes = Uint8Array.from(atob(byId(id).textContent), (char) => char.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  // --- theme: the system's until the reader chooses; storage is refused in sandboxed frames
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const listeners = [];
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  function stored(value) {
    try {
      if (value) localStorage.setItem("hopbench-theme", value);
      return localStorage.getItem("hopbench-theme");
    } catch {
      return null;
    }
  }
  function paint() {
    byId("theme").setAttribute("aria-pressed", String(isDark()));
    for (const listener of listeners) listener();
  }
  function startTheme() {
    const choice = stored();
    if (choice === "dark" || choice === "light") root.dataset.theme = choice;
    byId("theme").hidden = false;
    byId("theme").addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      stored(root.dataset.theme);
      paint();
    });
    system.addEventListener("change", paint);
    paint();
  }

  // --- sortable tables: numbers start with the best (the highest, unless the heading says otherwise), text with A;
  // missing values stay last
  function order(table, column, direction) {
    const sign = direction === "ascending" ? 1 : -1;
    const numeric = !table.tHead.rows[0].cells[column].classList.contains("text");
    const value = (row) => row.cells[column].dataset.value;
    const rows = [...table.tBodies[0].rows].sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      if (x === "" || y === "") return (x === "") - (y === "");
      return sign * (numeric ? x - y : x.localeCompare(y));
    });
    table.tBodies[0].append(...rows);
  }
  function startSorting(table) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      head.querySelector("button")?.addEventListener("click", () => {
        const first = head.dataset.first ?? (head.classList.contains("text") ? "ascending" : "descending");
        const other = first === "ascending" ? "descending" : "ascending";
        const direction = head.getAttribute("aria-sort") === first ? other : first;
        heads.forEach((each) => each.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", direction);
        order(table, column, direction);
        if (byId("sorted")) byId("sorted").textContent = `Sorted by ${head.textContent}, ${direction}`;
      });
    });
  }

  function startBreakdown() {
    const select = byId("breakdown-metric");
    if (!select) return;
    const panels = document.querySelectorAll(".breakdown");
    const show = () => panels.forEach((panel, place) => (panel.hidden = place !== select.selectedIndex));
    select.addEventListener("change", show);
    show(); // a reloaded page keeps the reader's choice
  }

  startTheme();
  document.querySelectorAll("table.sortable").forEach(startSorting);
  startBreakdown();
  return { byId, json, el, unpack, isDark, onTheme: (listener) => listeners.push(listener) };
})();
