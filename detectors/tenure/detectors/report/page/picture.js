/* Lanes, bars, marks and arrows of the rows that are in sight. */

const ROW = 28;
const HALF = ROW / 2;

/* One shape for each kind of operation, around 0,0: none is told by colour alone. */
const SHAPES = {
  "claim": () => [drawn("path", { class: "solid mark", d: "M-6,-4H6L0,6Z" })],
  "release": () => [drawn("path", { class: "mark", d: "M-8,0H8M-8,-3V3M8,-3V3" })],
  "superstep": () => [drawn("circle", { class: "solid mark", r: 2 })],
  "execute": () => [drawn("path", { class: "mark", d: "M0,-6L6,0L0,6L-6,0Z" })],
  "commit": () => [
    drawn("circle", { class: "solid mark", r: 6.5 }),
    drawn("g", { class: "mark" }, drawn("path", { class: "inner", d: "M-3,0L-1,2.5L3.2,-2.5" })),
  ],
  "discard": () => [
    drawn("circle", { class: "mark", r: 6.5 }),
    drawn("path", { class: "mark", d: "M-2.6,-2.6L2.6,2.6M2.6,-2.6L-2.6,2.6" }),
  ],
  "fenced discard": () => [
    drawn("path", { class: "mark", d: "M0,-7L6,-4.5V0C6,4 2.5,6.5 0,7.5C-2.5,6.5 -6,4 -6,0V-4.5Z" }),
    drawn("path", { class: "mark", d: "M-2.5,0H2.5" }),
  ],
  "checkpoint": () => [
    drawn("rect", { class: "mark", x: -5.5, y: -5.5, width: 11, height: 11, rx: 2 }),
    drawn("path", { class: "mark", d: "M-2.5,-5.5V-1.5H2.5V-5.5" }),
  ],
  "late": () => [drawn("path", { class: "mark", d: "M-5,-6H5L-5,6H5Z" })],
  "foreign": () => [drawn("path", { class: "mark", d: "M-6,-5H1L6,0L1,5H-6L-2,0Z" })],
};

function legendShape(kind) {
  return drawn("svg", { viewBox: "-9 -9 18 18", "aria-hidden": "true" }, ...SHAPES[kind]());
}

/* These stand on the bar itself; the others on a ground of their own. */
const BARE = new Set(["claim", "release", "superstep"]);

/* Draws one section. `rows` says which places are shown, in order. */
class Lanes {
  constructor(section, rows, left, room) {
    this.section = section;
    this.rows = rows;
    this.left = left;
    this.columns = section.groups.reduce((sum, columns) => sum + columns, 0);
    this.step = Math.max(34, Math.min(112, Math.floor(room / Math.max(this.columns, 1))));
    this.width = Math.max(this.columns * this.step, 40);
    this.bars = new Map(section.bars.map((bar) => [bar[0], bar]));
  }

  x(lane) { return this.left + (this.section.lanes[lane].column + 0.5) * this.step; }

  /* The middle of a place's row, or the edge where it would be if it is not shown. */
  y(place) {
    const at = countBelow(this.rows, place);
    return at * ROW + (this.rows[at] === place ? HALF : 0);
  }

  /* Everything between two shown rows, with 0 at the top of the first one. */
  draw(first, last, state) {
    const made = document.createDocumentFragment();
    const low = this.rows[first], high = this.rows[last - 1];
    const top = first * ROW, bottom = last * ROW;
    const inSight = (from, to) => from <= high && to >= low;
    this.guides(made, bottom - top);
    this.section.lanes.forEach((lane, number) => {
      if (inSight(lane.first, lane.last)) made.append(...this.threads(number, lane, top, bottom));
    });
    for (const bar of this.section.bars) {
      if (inSight(bar[1], bar[2])) made.append(this.bar(bar, top, bottom));
    }
    for (const step of this.section.supersteps) {
      if (inSight(step[2], step[3])) made.append(this.core(step, top, bottom));
    }
    for (let at = first; at < last; at += 1) {
      const row = this.section.rows[this.rows[at]];
      if (!isGap(row)) made.append(this.mark(row, this.rows[at], at * ROW - top + HALF, state));
    }
    for (const arrow of this.section.arrows) {
      const [from, to] = [Math.min(arrow[2], arrow[4]), Math.max(arrow[2], arrow[4])];
      if (inSight(from, to) && state.shows(DATA.findings[arrow[0]])) {
        const at = countBelow(this.rows, arrow[2]);
        if (this.rows[at] === arrow[2]) made.append(this.arrow(arrow, top));
      }
    }
    return made;
  }

  guides(made, height) {
    let x = this.left;
    for (const columns of this.section.groups) {
      made.append(drawn("line", { class: "guide", x1: x, x2: x, y1: 0, y2: height }));
      x += columns * this.step;
    }
    made.append(drawn("line", { class: "guide", x1: x, x2: x, y1: 0, y2: height }));
  }

  /* What a run does beside its bar hangs on a thread. */
  threads(number, lane, top, bottom) {
    const bar = this.bars.get(number);
    const spans = bar ? [[lane.first, bar[1]], [bar[2], lane.last]] : [[lane.first, lane.last]];
    const x = this.x(number);
    return spans.filter(([from, to]) => from < to).map(([from, to]) => drawn("line", {
      class: `thread ${epochClass(lane.epoch)}`, x1: x, x2: x,
      y1: Math.max(this.y(from) - top, -ROW), y2: Math.min(this.y(to) - top, bottom - top + ROW),
    }));
  }

  box(kind, lane, from, to, half, top, bottom) {
    // Cut to what is in sight: a rectangle of a million pixels is slow to paint.
    const y1 = Math.max(this.y(from) - top, -ROW);
    const y2 = Math.min(this.y(to) - top, bottom - top + ROW);
    return drawn("rect", {
      class: `${kind} ${epochClass(this.section.lanes[lane].epoch)}`,
      x: this.x(lane) - half, width: 2 * half, y: y1 - 2, height: Math.max(y2 - y1 + 4, 4), rx: 3,
    });
  }

  bar([lane, from, to, claimed, released], top, bottom) {
    const kind = claimed && released ? "tenure" : "tenure unsure";
    return this.box(kind, lane, from, to, 10, top, bottom);
  }

  core([lane, , from, to], top, bottom) {
    return this.box("core", lane, from, to, 2.5, top, bottom);
  }

  mark(row, place, y, state) {
    const { lane, kind, findings } = operation(row);
    const shown = findings.map((number) => DATA.findings[number]).filter((each) => state.shows(each));
    const group = drawn("g", {
      class: epochClass(this.section.lanes[lane].epoch),
      transform: `translate(${this.x(lane)},${y})`,
    });
    if (!BARE.has(kind)) group.append(drawn("circle", { class: "back", r: 8 }));
    if (shown.length) {
      const [worst] = shown;
      const sure = worst.certainty === "possible" ? " possible" : "";
      group.append(drawn("circle", { class: `halo ${worst.severity}${sure}`, r: 12 }));
    }
    group.append(...SHAPES[kind]());
    if (place === state.selected) group.append(drawn("circle", { class: "ring", r: 13 }));
    return group;
  }

  arrow([number, lane, place, toLane, toPlace], top) {
    const finding = DATA.findings[number];
    const harmless = HARMLESS.has(finding.severity);
    const x1 = this.x(lane), y1 = this.y(place) - top;
    const x2 = this.x(toLane), y2 = this.y(toPlace) - top;
    const group = drawn("g", { class: finding.severity, "data-finding": number });
    const kind = harmless ? "arrow harmless" : "arrow";
    if (Math.abs(y2 - y1) < 1) {
      const towards = x2 > x1 ? 1 : -1;
      const start = x1 + towards * 13, end = x2 - towards * 11;
      group.append(drawn("path", { class: kind, d: `M${start},${y1}H${end - towards * (harmless ? 0 : 6)}` }));
      group.append(tip(end, y1, towards, 0, harmless));
      if (Math.abs(end - start) > 84) {
        group.append(drawn("text", { class: "label", x: (start + end) / 2, y: y1 - 6 }, finding.title));
      }
      return group;
    }
    if (x1 === x2) {
      // Within one column: a bow beside the bar.
      const bow = x1 + Math.min(this.step * 0.9, 40), end = x2 + 11;
      group.append(drawn("path", { class: kind, d: `M${x1 + 13},${y1}C${bow},${y1} ${bow},${y2} ${end + (harmless ? 0 : 6)},${y2}` }));
      group.append(tip(end, y2, -1, 0, harmless));
      return group;
    }
    // Out of the culprit sideways, into the victim from above or from below.
    const down = y2 > y1 ? 1 : -1, end = y2 - down * 12;
    const side = x2 > x1 ? 1 : -1;
    const reach = end - down * (harmless ? 0 : 6);
    group.append(drawn("path", {
      class: kind, d: `M${x1 + side * 13},${y1}C${x2},${y1} ${x2},${y1} ${x2},${reach}`,
    }));
    group.append(tip(x2, end, 0, down, harmless));
    if (Math.abs(x2 - x1) > 110) {
      group.append(drawn("text", { class: "label", x: (x1 + x2) / 2, y: y1 + (down < 0 ? 14 : -6) }, finding.title));
    }
    return group;
  }
}

/* The end of an arrow: a head, or the wall at which a refused one stops. */
function tip(x, y, dx, dy, harmless) {
  if (harmless) {
    return drawn("path", { class: "wall", d: `M${x - 7 * Math.abs(dy)},${y - 7 * Math.abs(dx)}L${x + 7 * Math.abs(dy)},${y + 7 * Math.abs(dx)}` });
  }
  const back = 9, wide = 5.5;
  const bx = x - dx * back, by = y - dy * back;
  return drawn("path", {
    class: "head",
    d: `M${x},${y}L${bx + wide * dy},${by + wide * dx}L${bx - wide * dy},${by - wide * dx}Z`,
  });
}
