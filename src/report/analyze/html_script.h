// The page's own style and script: tables that sort when their heads are clicked, and a timeline
// that zooms with the wheel, moves when dragged, and names what is pointed at.
#pragma once

namespace tinyvllm {

inline constexpr char kAnalysisStyle[] = R"(<style>
body { max-width: 76rem; }
th[data-sort] { cursor: pointer; user-select: none; } th[data-sort]:hover { color: var(--text); }
th[aria-sort=ascending]::after { content: " ▲"; } th[aria-sort=descending]::after { content: " ▼"; }
th[data-sort]:focus-visible, button:focus-visible, canvas:focus-visible { outline: 2px solid var(--c0); outline-offset: 1px; }
td.name { max-width: 34rem; overflow: hidden; text-overflow: ellipsis; }
figure { overflow-x: auto; } figure svg { min-width: 36rem; }
.facts { color: var(--soft); } .none { color: var(--soft); font-style: italic; } .note { margin: .3rem 0; }
#timeline { position: relative; border: 1px solid var(--rule); border-radius: .5rem; background: var(--raised); padding: .5rem; }
#timeline canvas { display: block; width: 100%; touch-action: pan-y; cursor: grab; }
#timeline output { display: block; min-height: 1.6em; font-size: .85rem; color: var(--soft); }
#views { display: flex; flex-wrap: wrap; gap: .4rem; margin: .6rem 0; }
#views button { font: inherit; font-size: .85rem; color: var(--text); background: var(--raised); border: 1px solid var(--rule);
  border-radius: .4rem; padding: .2rem .7rem; cursor: pointer; } #views button:hover { border-color: var(--c0); }
.heat td { padding: 0; border: 1px solid var(--back); width: 1.5rem; min-width: .9rem; height: 1.5rem; background:
  color-mix(in srgb, var(--c1) calc(var(--h) * 1%), var(--raised)); }
.heat th { font-weight: 400; padding: .1rem .5rem; border: 0; font-size: .8rem; } .heat th.l { white-space: nowrap; }
</style>
)";

inline constexpr char kAnalysisScript[] = R"JS(<script>
"use strict";
for (const head of document.querySelectorAll("th[data-sort]")) {
  const sort = () => {
    const table = head.closest("table"), column = head.cellIndex, down = head.ariaSort !== "descending";
    for (const other of table.querySelectorAll("th")) other.ariaSort = null;
    head.ariaSort = down ? "descending" : "ascending";
    const key = row => { const cell = row.cells[column]; return cell.dataset.v === undefined ? cell.textContent : +cell.dataset.v; };
    const order = (a, b) => typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
    const rows = [...table.tBodies[0].rows].sort((a, b) => (down ? -1 : 1) * order(key(a), key(b)));
    table.tBodies[0].append(...rows);
  };
  head.tabIndex = 0;
  head.addEventListener("click", sort);
  head.addEventListener("keydown", event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); } });
}
const box = document.getElementById("timeline");
if (box) {
  const data = JSON.parse(document.getElementById("spans").textContent);
  const canvas = box.querySelector("canvas"), said = box.querySelector("output"), brush = canvas.getContext("2d");
  const left = 76, line = 20, rows = ["requests", "steps", "layers", "ops"];
  const lane = Math.min(line, Math.max(6, 120 / data.lanes)), tops = [0];
  for (let row = 0; row < 4; ++row) tops.push(tops[row] + (row === 0 ? lane * data.lanes : line) + 8);
  let from = 0, to = data.end;
  const at = x => from + (x - left) / (canvas.clientWidth - left) * (to - from);
  const time = us => us >= 1e6 ? (us / 1e6).toFixed(3) + " s" : us >= 1e3 ? (us / 1e3).toFixed(3) + " ms" : us.toFixed(1) + " µs";
  function colour(span, palette) {
    const name = data.names[span[4]];
    if (span[0] === 1) return name.startsWith("prefill") ? palette[1] : palette[0];
    if (span[0] === 0) return palette[2];
    let hash = 0;
    for (const c of name.replace(/_\d+$/, "")) hash = (hash * 31 + c.charCodeAt(0)) >>> 0;
    return span[0] === 2 ? palette[5] : palette[hash % 6];
  }
  function draw() {
    const css = getComputedStyle(document.documentElement), get = name => css.getPropertyValue(name).trim();
    const palette = [0, 1, 2, 3, 4, 5].map(i => get("--c" + i));
    const width = canvas.clientWidth, height = tops[4] + 18, ratio = devicePixelRatio || 1;
    canvas.width = width * ratio; canvas.height = height * ratio; canvas.style.height = height + "px";
    brush.setTransform(ratio, 0, 0, ratio, 0, 0);
    brush.font = "12px system-ui, sans-serif";
    brush.textBaseline = "middle";
    const scale = (width - left) / (to - from);
    for (const span of data.spans) {
      const [row, place, begin, lasted, name] = span;
      if (begin > to || begin + lasted < from) continue;
      const x = Math.max(left, left + (begin - from) * scale), y = tops[row] + (row ? 0 : place * lane);
      const w = Math.max(0.7, Math.min(width, left + (begin + lasted - from) * scale) - x), h = row ? line : lane - 1;
      brush.fillStyle = colour(span, palette);
      brush.globalAlpha = 0.85;
      brush.fillRect(x, y, w > 3 ? w - 1 : w, h);
      brush.globalAlpha = 1;
      if (w > 40 && h > 12) {
        brush.save(); brush.beginPath(); brush.rect(x, y, w - 3, h); brush.clip();
        brush.fillStyle = get("--back"); brush.fillText(data.names[name], x + 4, y + h / 2 + 1); brush.restore();
      }
    }
    brush.fillStyle = get("--soft");
    rows.forEach((name, row) => brush.fillText(name, 0, (tops[row] + tops[row + 1] - 8) / 2));
    brush.textBaseline = "alphabetic";
    const ticks = Math.max(2, Math.floor((width - left) / 130));
    for (let i = 0; i <= ticks; ++i) {
      brush.textAlign = i === 0 ? "left" : i === ticks ? "right" : "center";
      brush.fillText(time(from + (to - from) * i / ticks), left + (width - left) * i / ticks, height - 4);
    }
    brush.textAlign = "left";
  }
  function show(begin, end) {
    const least = 1, wide = Math.max(end - begin, least);
    from = Math.max(0, begin); to = Math.min(data.end, from + wide); from = Math.max(0, to - wide);
    draw();
  }
  function zoom(x, factor) { const centre = at(x); show(centre - (centre - from) * factor, centre + (to - centre) * factor); }
  canvas.addEventListener("wheel", event => { event.preventDefault(); zoom(event.offsetX, event.deltaY > 0 ? 1.25 : 0.8); }, { passive: false });
  canvas.addEventListener("dblclick", () => show(0, data.end));
  canvas.addEventListener("keydown", event => {
    const step = (to - from) / 5, moves = { ArrowLeft: -step, ArrowRight: step };
    if (event.key in moves) { event.preventDefault(); show(from + moves[event.key], to + moves[event.key]); }
    if (event.key === "+" || event.key === "-") zoom((left + canvas.clientWidth) / 2, event.key === "+" ? 0.7 : 1.4);
  });
  let grabbed = null;
  canvas.addEventListener("pointerdown", event => { grabbed = [event.offsetX, from, to]; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointerup", () => { grabbed = null; });
  canvas.addEventListener("pointermove", event => {
    if (grabbed) {
      const moved = (grabbed[0] - event.offsetX) / (canvas.clientWidth - left) * (grabbed[2] - grabbed[1]);
      show(grabbed[1] + moved, grabbed[2] + moved);
      return;
    }
    const when = at(event.offsetX), near = 2 * (to - from) / canvas.clientWidth, row = tops.findIndex(top => event.offsetY < top) - 1;
    const hit = data.spans.findLast(span => span[0] === row && span[2] - near <= when && when <= span[2] + span[3] + near &&
      (row !== 0 || span[1] === Math.floor((event.offsetY - tops[0]) / lane)));
    said.textContent = hit ? `${data.names[hit[4]]}: ${time(hit[3])}, from ${time(hit[2])}` : "";
  });
  for (const button of document.querySelectorAll("#views button")) {
    button.addEventListener("click", () => show(+button.dataset.from, +button.dataset.to));
  }
  new ResizeObserver(draw).observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
}
</script>
)JS";

}  // namespace tinyvllm
