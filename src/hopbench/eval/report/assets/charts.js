// Charts: Plotly is unpacked once the page is readable, the charts near the view are drawn first, and all of them
// before the page counts as loaded: what prints it then has them. They are redrawn when theme or paper change.
(() => {
  "use strict";
  const { byId, json, unpack, isDark, onTheme } = HopBench;
  if (!byId("figures")) return;
  const figures = new Map(json("figures").map((figure) => [figure.id, figure]));
  const LIGHT = ["#1d5fbf", "#c4460f", "#0b7a63", "#8b3fc7", "#946200", "#c22a68", "#3f7d20", "#0a7594", "#6b4f3a", "#555f6d"];
  const DARK = ["#7ab0ff", "#ff9a62", "#4fd1b0", "#c99bff", "#e6b84c", "#ff86b3", "#97d077", "#5fd0ef", "#c9a98c", "#aab4c2"];
  const SYMBOLS = ["circle", "square", "diamond", "triangle-up", "cross", "x", "triangle-down", "star", "hexagon", "pentagon"];
  const drawn = new Set();
  let printing = false;
  let library = null;

  function load() {
    library ??= unpack("plotly-packed").then((source) => {
      const script = document.createElement("script");
      script.textContent = source;
      document.head.append(script);
    });
    return library;
  }

  function dress(trace, ink) {
    const { series, hop_free: hopFree, front, ceiling, band, sizes } = trace.meta;
    if (front) return { ...trace, line: { ...trace.line, color: ink.muted, width: 1.5, dash: "dot" }, showlegend: false };
    if (ceiling) {
      const bar = { symbol: "line-ns-open", size: 20, line: { width: 3, color: ink.muted }, color: ink.muted };
      return { ...trace, marker: bar };
    }
    const color = ink.series[series % ink.series.length];
    if (band) return { ...trace, fill: "toself", fillcolor: `${color}33`, line: { width: 0 }, hoverinfo: "skip", showlegend: false };
    const round = Math.floor(series / ink.series.length); // from the second on, a colour has another symbol
    const symbol = SYMBOLS[(series + 3 * round) % SYMBOLS.length] + (hopFree ? "-open" : "");
    return {
      ...trace,
      line: { color, width: 2, dash: hopFree ? "dash" : "solid" },
      marker: { color, symbol, size: sizes ?? 9, line: { width: hopFree ? 2 : 0, color } },
      textfont: { color: ink.text, size: 12 },
      cliponaxis: false,
      ...(trace.error_y ? { error_y: { ...trace.error_y, color } } : {}),
    };
  }

  function palette() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(name).trim();
    return { text: read("--text"), muted: read("--muted"), grid: read("--line"), paper: read("--card"), series: isDark() && !printing ? DARK : LIGHT };
  }

  // Where names would not fit beside their points, they go into the legend.
  const crowded = (figure, width) => width < 480 || figure.traces.length > 7;

  function layout(figure, ink, width) {
    const named = Boolean(figure.layout.showlegend) || crowded(figure, width);
    const small = { size: 12, color: ink.muted };
    const axis = (own) => ({ gridcolor: ink.grid, zeroline: false, linecolor: ink.grid, automargin: true, fixedrange: true, ...own, title: { font: small, ...own.title } });
    const rows = figure.rows ? 34 * figure.rows : 260;
    const longest = Math.max(...figure.traces.map((trace) => trace.name.length));
    const perLine = Math.max(1, Math.floor((width - 20) / (7.5 * longest + 50)));
    const legend = named ? 20 * Math.ceil(figure.traces.length / perLine) + 58 : 50;
    return {
      ...figure.layout,
      xaxis: axis(figure.layout.xaxis),
      yaxis: axis(figure.layout.yaxis),
      width,
      height: rows + legend + 20,
      margin: { l: 48, r: 24, t: 14, b: legend },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: ink.text },
      hoverlabel: { bgcolor: ink.paper, bordercolor: ink.grid, font: { color: ink.text } },
      legend: { orientation: "h", maxheight: 2000, xref: "container", yref: "container", y: 0, yanchor: "bottom", x: 0, itemclick: "toggle", itemdoubleclick: "toggleothers" },
      showlegend: named,
      transition: { duration: 0 },
    };
  }

  async function draw(place) {
    const figure = figures.get(place.dataset.figure);
    await load();
    if (!drawn.has(place)) place.textContent = "";
    drawn.add(place);
    place.dataset.width = place.clientWidth;
    const ink = palette();
    const narrow = crowded(figure, place.clientWidth);
    const traces = figure.traces.map((trace) => dress(trace, ink));
    if (narrow) traces.forEach((trace) => (trace.mode = trace.mode.replace("+text", "")));
    const settings = { displayModeBar: false };
    await Plotly.react(place, traces, layout(figure, ink, place.clientWidth), settings);
    for (const svg of place.querySelectorAll(".main-svg")) { // paper scales what was drawn for the screen
      const [width, height] = [svg.getAttribute("width"), svg.getAttribute("height")];
      svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
      place.style.setProperty("--ratio", `${width} / ${height}`);
    }
    place.dataset.drawn = isDark() ? "dark" : "light";
  }

  const places = [...document.querySelectorAll(".chart")];
  const near = new IntersectionObserver(
    (entries) => entries.filter((entry) => entry.isIntersecting).forEach((entry) => {
      near.unobserve(entry.target);
      draw(entry.target);
    }),
    { rootMargin: "600px" },
  );
  places.forEach((place) => near.observe(place));
  // Redrawn, not only stretched: legends, heights and names beside points depend on the width.
  const resized = new ResizeObserver((entries) => entries.forEach(({ target }) => {
    if (drawn.has(target) && Number(target.dataset.width) !== target.clientWidth) draw(target);
  }));
  places.forEach((place) => resized.observe(place));
  onTheme(() => drawn.forEach(draw));
  const paper = matchMedia("print");
  const onPaper = (begun) => {
    if (printing === begun) return;
    printing = begun;
    drawn.forEach(draw);
  };
  paper.addEventListener("change", (event) => onPaper(event.matches));
  addEventListener("beforeprint", () => onPaper(true));
  addEventListener("afterprint", () => onPaper(false));

  // A document that is still open keeps the page loading. Painting comes first: a chart takes a tenth of a second.
  const frame = document.createElement("iframe");
  frame.hidden = true;
  document.body.append(frame);
  frame.contentDocument.open();
  const breath = () => new Promise((ready) => setTimeout(ready));
  (async () => {
    try {
      for (const place of places) {
        await breath();
        if (!drawn.has(place)) await draw(place);
      }
    } finally {
      frame.contentDocument.close();
      frame.remove();
    }
  })();
})();
