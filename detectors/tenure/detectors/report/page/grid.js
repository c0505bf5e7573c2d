/* The rows of one section: only those in sight exist as elements. */

const SPARE = 16;

class Grid {
  constructor(onSelect) {
    this.grid = byId("grid");
    this.canvas = byId("canvas");
    this.onSelect = onSelect;
    this.section = null;
    this.shown = [];
    this.selected = null;
    this.hiddenKinds = new Set();
    this.hiddenSeverities = new Set();
    this.text = "";
    this.haystacks = new Map();
    this.window = [0, 0];
    let asked = false;
    const ask = () => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => { asked = false; this.paint(); });
    };
    this.grid.addEventListener("scroll", ask, { passive: true });
    new ResizeObserver(() => this.layOut()).observe(this.grid);
    this.canvas.addEventListener("click", (event) => {
      const row = event.target.closest(".row");
      if (row) this.select(Number(row.dataset.place));
    });
    this.canvas.addEventListener("dblclick", () => byId("details").focus());
  }

  shows(finding) { return !this.hiddenSeverities.has(finding.severity); }

  open(section) {
    this.section = section;
    this.selected = null;
    this.start = section.rows.find((row) => !isGap(row) && row[4])?.[4] ?? 0;
    this.grid.scrollTop = 0;
    this.apply();
  }

  /* Decide which rows are shown; keep what is selected in sight. */
  apply() {
    const { rows } = this.section;
    const shown = [];
    for (let place = 0; place < rows.length; place += 1) {
      if (this.matches(rows[place], place)) shown.push(place);
    }
    this.shown = shown;
    this.grid.setAttribute("aria-rowcount", String(shown.length + 1));
    this.layOut();
    if (this.selected !== null) this.reveal(this.selected);
  }

  matches(row, place) {
    if (isGap(row)) return this.text === "";
    if (this.hiddenKinds.has(row[1])) return false;
    return this.text === "" || this.haystack(place).includes(this.text);
  }

  haystack(place) {
    let known = this.haystacks.get(this.section);
    if (!known) this.haystacks.set(this.section, (known = []));
    if (known[place] === undefined) {
      const row = this.section.rows[place], lane = this.section.lanes[row[0]];
      known[place] = [
        `epoch ${lane.epoch} `, lane.run, row[3], row[5], row[6], row[7], JSON.stringify(row[8]),
      ].join("\n").toLowerCase();
    }
    return known[place];
  }

  layOut() {
    if (!this.section) return;
    const seq = this.section.processes.length > 1 ? 76 : 56;
    this.grid.style.setProperty("--seq", `${seq}px`);
    const room = Math.min(this.grid.clientWidth * 0.42, 560);
    this.lanes = new Lanes(this.section, this.shown, seq, room);
    this.canvas.style.height = `${this.shown.length * ROW}px`;
    byId("columns").style.width = `${this.lanes.width}px`;
    this.paint(true);
  }

  paint(anew = false) {
    const first = Math.floor(this.grid.scrollTop / ROW);
    const count = Math.ceil(this.grid.clientHeight / ROW) + 1;
    this.heads(first);
    const [from, to] = this.window;
    if (!anew && first >= from && first + count <= Math.max(to, 0)) return;
    const low = Math.max(0, first - SPARE);
    const high = Math.min(this.shown.length, first + count + SPARE);
    this.window = [low, high === this.shown.length ? Infinity : high];
    const rows = [];
    for (let at = low; at < high; at += 1) rows.push(this.row(at));
    if (!rows.length) {
      this.canvas.replaceChildren(element("p", { class: "empty" }, "No operation matches."));
      return;
    }
    const svg = drawn("svg", {
      width: this.lanes.left + this.lanes.width, height: (high - low) * ROW, "aria-hidden": "true",
    });
    svg.style.top = `${low * ROW}px`;
    svg.append(this.lanes.draw(low, high, this));
    this.canvas.replaceChildren(...rows, svg);
    this.point();
  }

  row(at) {
    const place = this.shown[at], row = this.section.rows[place];
    const chosen = place === this.selected;
    const seq = element("span", { class: "seq", role: "gridcell" }, seqText(this.section, row));
    const lanes = element("span", { class: "lanes" });
    lanes.style.width = `${this.lanes.width}px`;
    const found = isGap(row) ? [] : row[9].map((number) => DATA.findings[number]).filter((each) => this.shows(each));
    const classes = ["row"];
    if (isGap(row)) classes.push("gap");
    else if (DATA.kinds[row[1]] === "superstep") classes.push("quiet");
    if (found.length) classes.push("accused", found[0].severity);
    const made = element("div", {
      class: classes.join(" "), role: "row", id: `row-${place}`, "data-place": place,
      "aria-rowindex": at + 2, "aria-selected": String(chosen),
    }, seq, lanes, this.says(row, found), this.after(row));
    made.style.top = `${at * ROW}px`;
    return made;
  }

  says(row, found) {
    if (isGap(row)) return element("span", { class: "says", role: "gridcell" }, gapText(this.section, row));
    const { epoch } = this.section.lanes[row[0]];
    return element("span", { class: "says", role: "gridcell", title: row[3] },
      element("span", { class: `epoch ${epochClass(epoch)}` }, `epoch ${epoch}`),
      element("span", { class: "words" }, row[3]),
      ...found.map((each) => element("span", { class: `badge ${each.severity}` }, `${GLYPHS[each.severity]} ${each.title}`)));
  }

  /* Time since the first operation, for the eye only: it orders nothing. */
  after(row) {
    const time = isGap(row) || !row[4] || !this.start ? "" : elapsed(row[4] - this.start);
    return element("span", { class: "time", role: "gridcell" }, time);
  }

  /* Above each column: the run that is drawn there at the top of the view. */
  heads(first) {
    const top = this.shown[Math.min(first, this.shown.length - 1)] ?? 0;
    if (this.headed === top && this.headedLanes === this.lanes) return;
    [this.headed, this.headedLanes] = [top, this.lanes];
    const { step, columns } = this.lanes;
    const current = new Array(columns).fill(null);
    this.section.lanes.forEach((lane, number) => {
      const known = current[lane.column];
      const over = known !== null && this.section.lanes[known].last < top;
      if (known === null || (over && lane.first >= 0)) current[lane.column] = number;
    });
    const made = [];
    if (this.section.groups.length > 1) {
      let at = 0;
      this.section.groups.forEach((width, group) => {
        const name = `p${group + 1} ${this.section.processes[group]}`;
        const label = element("span", { class: "group", title: name }, name);
        label.style.left = `${at * step}px`;
        label.style.width = `${width * step}px`;
        made.push(label);
        at += width;
      });
    }
    current.forEach((number, column) => {
      if (number === null) return;
      const lane = this.section.lanes[number];
      const text = step >= 72 ? `epoch ${lane.epoch}` : String(lane.epoch);
      const label = element("span", { class: `lane ${step < 44 ? "tight " : ""}${epochClass(lane.epoch)}`, title: `epoch ${lane.epoch}, run ${lane.run}` }, text);
      label.style.left = `${(column + 0.5) * step}px`;
      made.push(label);
    });
    byId("columns").replaceChildren(...made);
  }

  point() {
    const id = `row-${this.selected}`;
    if (this.selected !== null && byId(id)) this.grid.setAttribute("aria-activedescendant", id);
    else this.grid.removeAttribute("aria-activedescendant");
  }

  select(place) {
    if (place === null || place === undefined) return;
    this.selected = place;
    this.reveal(place);
    this.paint(true);
    this.onSelect(place);
  }

  /* Scroll so that the row stands clear of the head and of the lower edge. */
  reveal(place) {
    const at = countBelow(this.shown, place);
    if (this.shown[at] !== place) return;
    const top = at * ROW, height = this.grid.clientHeight - 34;
    const margin = Math.min(4 * ROW, height / 3);
    if (top - margin < this.grid.scrollTop) this.grid.scrollTop = top - margin;
    else if (top + ROW + margin > this.grid.scrollTop + height) this.grid.scrollTop = top + ROW + margin - height;
  }

  /* Move by a number of rows; gaps are not stopped at. */
  move(by) {
    if (!this.shown.length) return;
    const towards = by < 0 ? -1 : 1, end = this.shown.length - 1;
    let at = this.selected === null ? (by < 0 ? end + 1 : -1) : countBelow(this.shown, this.selected);
    at = Math.max(0, Math.min(end, at + by));
    while (at >= 0 && at <= end && isGap(this.section.rows[this.shown[at]])) at += towards;
    if (at < 0 || at > end) return;
    this.select(this.shown[at]);
  }

  /* Move to the next operation of the same run. */
  along(towards) {
    if (this.selected === null) { this.move(towards); return; }
    if (isGap(this.section.rows[this.selected])) return;
    const lane = this.section.rows[this.selected][0];
    let at = countBelow(this.shown, this.selected) + towards;
    while (at >= 0 && at < this.shown.length) {
      const row = this.section.rows[this.shown[at]];
      if (!isGap(row) && row[0] === lane) { this.select(this.shown[at]); return; }
      at += towards;
    }
  }
}

function elapsed(microseconds) {
  const size = Math.abs(microseconds), sign = microseconds < 0 ? "−" : "+";
  if (size < 1_000) return `${sign}${size} µs`;
  if (size < 1_000_000) return `${sign}${(size / 1_000).toFixed(1)} ms`;
  if (size < 600_000_000) return `${sign}${(size / 1_000_000).toFixed(2)} s`;
  return `${sign}${(size / 60_000_000).toFixed(1)} min`;
}
