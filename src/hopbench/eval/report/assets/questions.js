// The questions: filters, a paged list, and one question's evidence with the paths that led to it.
(() => {
  "use strict";
  const { byId, json, el, unpack } = HopBench;
  if (!byId("index")) return;
  const index = json("index");
  const { labels, questions } = index;
  const PAGE = 20;
  const batches = new Map();
  const MOST = 6; // parts of a score that are shown at once
  const state = { page: 0, open: null, shown: [], left: labels[0], right: index.baseline };
  if (state.right === state.left || !labels.includes(state.right)) state.right = labels[1] || labels[0];
  questions.forEach((q) => {
    q.haystack = [q.id, q.text, q.answer, ...q.titles].join("\n").toLowerCase();
  });

  // --- list and filters
  const MARK = { 1: ["✓", "hit"], 0: ["✗", "miss"], null: ["!", "failed"] };
  function marks(q) {
    const found = labels.filter((_, i) => q.found[i] === 1);
    const measured = q.found.some((value) => value !== null);
    const spans = q.found.map((value, i) => el("span", { className: MARK[value][1], title: labels[i] }, MARK[value][0]));
    if (!measured) return null;
    return el("span", { className: "marks" },
      el("span", { "aria-hidden": "true" }, ...spans),
      el("span", { className: "sr" }, found.length ? `found by ${found.join(", ")}` : "found by no label"));
  }
  function matches(q) {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const [finds, misses] = [labels.indexOf(byId("finds").value), labels.indexOf(byId("misses").value)];
    return words.every((word) => q.haystack.includes(word)) &&
      (!byId("type").value || q.type === byId("type").value) &&
      (finds < 0 || q.found[finds] === 1) && (misses < 0 || q.found[misses] === 0);
  }
  function item(q) {
    const button = el("button", { type: "button" },
      el("span", { className: "text" }, q.text),
      el("span", { className: "meta" }, el("span", { className: "tag" }, q.type || "no type"), marks(q)));
    if (q === state.open) button.setAttribute("aria-current", "true");
    button.addEventListener("click", () => open(q));
    return el("li", {}, button);
  }
  function list() {
    const pages = Math.max(1, Math.ceil(state.shown.length / PAGE));
    state.page = Math.min(Math.max(state.page, 0), pages - 1);
    byId("list").replaceChildren(...state.shown.slice(state.page * PAGE, (state.page + 1) * PAGE).map(item));
    byId("page").textContent = `${state.page + 1} of ${pages}`;
    byId("before").disabled = state.page === 0;
    byId("after").disabled = state.page >= pages - 1;
    byId("shown").textContent = `${state.shown.length} of ${questions.length} questions` +
      (labels.length > 1 && index.metric ? `; marks in order: ${labels.join(", ")}` : "");
  }
  function filter() {
    state.shown = questions.filter(matches);
    state.page = 0;
    list();
  }

  // --- one question
  async function details(q) {
    if (q.at === null) return null;
    const [number, slot] = q.at;
    if (!batches.has(number)) batches.set(number, unpack(`batch-${number}`).then(JSON.parse));
    const batch = await batches.get(number);
    return { batch, ...batch.questions[slot] };
  }
  const number = (value) => (value === null ? "–" : Math.abs(value) >= 1e-3 || value === 0 ? String(+value.toFixed(4)) : value.toExponential(2));
  const short = (value) => (value === null ? "" : value.toFixed(2).replace(/^0\./, "."));

  function ranks(q, detail) {
    const cell = (rank) => rank === null
      ? el("td", { className: "number muted" }, "not listed")
      : el("td", { className: "number" }, el("span", { className: rank <= 10 ? "rank in" : "rank" }, `${rank}`));
    const rows = labels.map((label, i) => {
      const entry = detail.labels[i];
      const cells = entry.failure
        ? [el("td", { colSpan: q.titles.length, className: "failed" }, `! ${entry.failure}`)]
        : entry.ranks.map(cell);
      const sign = MARK[q.found[i]];
      return el("tr", {}, el("th", { scope: "row" }, el("span", { className: "label" }, label)), ...cells,
        el("td", {}, el("span", { className: sign[1] }, `${sign[0]} ${{ 1: "found", 0: "missed", null: entry.failure ? "failed" : "not measured" }[q.found[i]]}`)),
        detail.sets ? el("td", {}, entry.set || "–") : null,
        el("td", { className: "number" }, entry.ms === null || entry.ms === undefined ? "–" : `${entry.ms.toFixed(1)} ms`));
    });
    const head = el("tr", {}, el("th", { scope: "col" }, "Label"),
      ...q.titles.map((title) => el("th", { scope: "col", className: "number" }, title)),
      el("th", { scope: "col" }, index.metric), detail.sets ? el("th", { scope: "col" }, "gold set that counts") : null, el("th", { scope: "col", className: "number" }, "latency"));
    const table = el("table", {}, el("caption", {}, "Rank of each gold passage"), el("thead", {}, head), el("tbody", {}, ...rows));
    return el("div", { className: "scroll", role: "region", tabIndex: 0, "aria-label": "Rank of each gold passage" }, table);
  }
  function chain(path, batch) {
    const node = (place) => {
      const [name, isPassage] = batch.nodes[place];
      return el("span", { className: isPassage ? "node passage" : "node" }, name);
    };
    const steps = [];
    let last = null;
    for (const [edge, source, target, weight, score] of path) {
      if (source !== last) steps.push(node(source));
      const value = el("span", { className: "weight" }, short(weight));
      steps.push(el("span", { className: "edge", title: `path score after this edge: ${number(score)}` }, "→ ", edge, " ", value, " → "), node(target));
      last = target;
    }
    return el("p", { className: "chain" }, el("span", { className: "sr" }, "Path: "), ...steps);
  }
  function quoted(quotes) {
    const line = ([title, before, mention, after]) =>
      el("li", {}, el("span", { className: "muted" }, `${title}: `), before, el("mark", {}, mention), after);
    return el("ul", { className: "quotes" }, ...quotes.map(line));
  }
  function hit(entry, batch) {
    const [passage, rank, score, gold, origin, components, path, quotes, facts] = entry;
    const [, title, text] = batch.passages[passage];
    const known = Object.entries(components);
    const told = known.length > MOST ? known.filter(([, value]) => value).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])) : known;
    const listed = (some) => some.map(([name, value]) => `${name} ${number(value)}`).join(" · ");
    const smaller = told.slice(MOST);
    const bare = batch.brief && !text; // nothing to unfold
    const head = el(bare ? "div" : "summary", { className: "head" }, el("span", { className: "rank" }, `${rank}`),
      el("span", { className: "title" }, title || "untitled"),
      gold ? el("span", { className: "tag gold" }, "★ gold") : null,
      origin ? el("span", { className: `tag ${origin}` }, origin) : null,
      el("span", { className: "score" }, bare ? "" : number(score)));
    return el("li", { className: gold ? "hit gold" : "hit" },
      bare ? head : el("details", {}, head, el("p", { className: "passage-text" }, text || "no text")),
      path.length ? chain(path, batch) : null,
      facts.length ? el("ul", { className: "quotes" }, ...facts.map((fact) => el("li", {}, fact))) : null,
      quotes.length ? quoted(quotes) : null,
      told.length ? el("p", { className: "components" }, listed(told.slice(0, MOST))) : null,
      smaller.length ? el("details", { className: "components" }, el("summary", {}, `${smaller.length} smaller parts of the score`), listed(smaller)) : null);
  }
  function told(entry, batch) {
    if (!entry.context) return [];
    const { tokens, block, block_tokens, passages } = entry.context;
    const of = block ? `, ${block_tokens} of them the graph block` : "";
    const context = el("details", { className: "told context" },
      el("summary", {}, `Context for the reader: ${tokens} tokens${of}`),
      block ? el("pre", {}, block) : null,
      el("ol", {}, ...passages.map((place) => el("li", {}, batch.passages[place][1] || batch.passages[place][0]))));
    const lines = entry.trace.map(([name, text]) => [el("dt", {}, name), el("dd", {}, text)]);
    const trace = el("details", { className: "told trace" }, el("summary", {}, "What the strategy noted"), el("dl", {}, ...lines.flat()));
    return lines.length ? [trace, context] : [context];
  }
  function ranking(side, q, detail) {
    const select = el("select", {}, ...labels.map((label) => el("option", { value: label, selected: label === state[side] }, label)));
    const box = el("div", {});
    const fill = () => {
      state[side] = select.value;
      const entry = detail.labels[labels.indexOf(select.value)];
      const brief = (passage, place) => [passage, place + 1, null, Number(detail.gold.includes(passage)), "", {}, [], [], []];
      const hits = entry.hits.map((each, place) => hit(Array.isArray(each) ? each : brief(each, place), detail.batch));
      const seen = new Set(detail.gold.filter((_, i) => entry.ranks[i] !== null && entry.ranks[i] !== undefined));
      const lost = detail.gold.filter((place) => !seen.has(place)).map((place) => detail.batch.passages[place][1]);
      box.replaceChildren(
        entry.failure ? el("p", { className: "failed" }, `! ${entry.failure}`) : el("ol", { className: "hits" }, ...hits),
        !entry.failure && lost.length ? el("p", { className: "lost" }, `Not among the ${entry.listed} listed: ${lost.join(", ")}`) : null ?? "",
        ...told(entry, detail.batch));
    };
    select.addEventListener("change", fill);
    fill();
    return el("section", { className: "ranking" }, el("label", { className: "pick" }, side === "left" ? "Ranking of " : "beside ", select), box);
  }
  function goldPassages(detail) {
    return detail.gold.map((place) => {
      const [id, title, text] = detail.batch.passages[place];
      const sets = (detail.sets || []).flatMap((one, i) => (one.includes(place) ? [`set ${i + 1}`] : [])).join(", ");
      return el("details", { className: "gold-passage", open: true },
        el("summary", {}, el("span", { className: "tag gold" }, "★ gold"), sets ? ` ${sets}` : null, " ", el("b", {}, title || id)), el("p", {}, text));
    });
  }
  async function open(q, focus = true) {
    state.open = q;
    list();
    const detail = await details(q);
    if (state.open !== q) return;
    const answer = [q.answer, ...((detail && detail.aliases) || [])].filter((text) => text !== null);
    const step = (by, text) => {
      const place = state.shown.indexOf(q) + by;
      const button = el("button", { type: "button", className: "quiet", disabled: !state.shown[place] }, text);
      button.addEventListener("click", () => {
        state.page = Math.floor(place / PAGE);
        open(state.shown[place]);
      });
      return button;
    };
    const back = el("button", { type: "button", className: "quiet back" }, "Back to the list");
    back.addEventListener("click", () => (byId("list").querySelector("[aria-current]") || byId("search")).focus());
    const missing = (what) => el("p", { className: "hint" }, `${what} of this question were left out to keep the file small. `,
      el("code", {}, `hopbench explain ${q.id} --run FOLDER --strategy LABEL`), " prints them.");
    byId("detail").replaceChildren(
      el("div", { className: "steps" }, back, step(-1, "← Previous question"), step(1, "Next question →")),
      el("h3", { id: "detail-title" }, q.text),
      el("p", { className: "meta" }, el("span", { className: "tag" }, q.type || "no type"), el("code", {}, q.id),
        answer.length ? el("span", {}, "Answer: ", el("b", {}, answer[0]), answer.length > 1 ? ` (also ${answer.slice(1).join(", ")})` : "") : null),
      detail && detail.batch.brief ? missing("Further hits, scores, paths and texts") : "",
      ...(detail
        ? [...goldPassages(detail), ranks(q, detail),
          el("div", { className: "pair" }, ranking("left", q, detail), labels.length > 1 ? ranking("right", q, detail) : null)]
        : [missing("Rankings")]));
    remember(q);
    if (focus) byId("detail").focus();
  }

  // --- links to a question: #question=ID
  function remember(q) {
    try {
      history.replaceState(null, "", `#question=${encodeURIComponent(q.id)}`);
    } catch {
      return; // a sandboxed frame has no address of its own
    }
  }
  function follow() {
    if (!location.hash.startsWith("#question=")) return;
    const id = decodeURIComponent(location.hash.slice("#question=".length));
    const q = questions.find((each) => each.id === id);
    if (q) open(q);
  }

  function start() {
    const choose = (id, values) => byId(id).append(...values.map((value) => el("option", { value }, value)));
    choose("type", [...new Set(questions.map((q) => q.type).filter(Boolean))].sort());
    choose("finds", labels);
    choose("misses", labels);
    byId("filters").hidden = false;
    document.querySelector(".drill").hidden = false;
    byId("filters").addEventListener("submit", (event) => event.preventDefault());
    byId("search").addEventListener("input", filter);
    for (const id of ["type", "finds", "misses"]) byId(id).addEventListener("change", filter);
    byId("swap").addEventListener("click", () => {
      [byId("finds").value, byId("misses").value] = [byId("misses").value, byId("finds").value];
      filter();
    });
    byId("before").addEventListener("click", () => { state.page -= 1; list(); });
    byId("after").addEventListener("click", () => { state.page += 1; list(); });
    window.addEventListener("hashchange", follow);
    filter();
    follow();
  }
  start();
})();
