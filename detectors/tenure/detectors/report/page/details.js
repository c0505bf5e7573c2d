/* What is known of one operation, and what it is accused of. */

class Details {
  constructor(go) {
    this.pane = byId("details");
    this.go = go;
  }

  nothing(section) {
    const runs = section.lanes.length;
    this.pane.replaceChildren(
      element("h3", {}, section.name),
      element("p", {}, `${several(section.rows.filter((row) => !isGap(row)).length, "operation")} of ${several(runs, "run")}.`),
      element("p", {}, "Choose an operation to see its keys, its owner and its span."),
    );
    this.pane.scrollTop = 0;
  }

  show(section, place) {
    const row = section.rows[place];
    if (isGap(row)) {
      this.pane.replaceChildren(element("h3", {}, gapText(section, row)));
      return;
    }
    const found = operation(row), lane = section.lanes[found.lane];
    this.pane.replaceChildren(
      ...found.findings.map((number) => this.finding(section, number, place)),
      element("section", {},
        element("h3", { class: epochClass(lane.epoch) }, `epoch ${lane.epoch} ${found.says}`),
        this.facts(section, found, lane),
        ...this.writes(found.attributes),
        element("h4", {}, "span"),
        this.table([
          ["name", found.span],
          ["trace id", found.trace || "not recorded"],
          ["span id", found.spanId || "not recorded"],
        ]),
        element("h4", {}, "attributes"),
        this.table(Object.entries({ ...lane.attributes, ...found.attributes }), "attributes")),
    );
    this.pane.scrollTop = 0;
  }

  finding(section, number, place) {
    const finding = DATA.findings[number];
    const arrow = section.arrows.find((each) => each[0] === number);
    const victim = arrow ? this.markNear(section, arrow[3], arrow[4]) : null;
    return element("section", { class: `finding ${finding.severity}`, "data-finding": number },
      element("h3", {}, `${GLYPHS[finding.severity]} ${finding.title}`),
      element("p", { class: "sure" }, `${finding.severity}, ${finding.certainty}`),
      ...finding.proof.map(clause),
      finding.keys.length
        ? element("div", { class: "keys", "aria-label": "keys" }, ...finding.keys.map((key) => element("code", {}, key)))
        : null,
      ...finding.missing.map((missing) => element("p", { class: "implies" }, `missing: ${missing}`)),
      finding.implies ? element("p", { class: "implies" }, `implies: ${finding.implies}`) : null,
      element("div", { class: "go" },
        victim === null || victim === place ? null
          : element("button", { type: "button", on: { click: () => this.go(victim) } }, `to epoch ${section.lanes[arrow[3]].epoch}`)));
  }

  /* The operation of a lane that is nearest to where an arrow meets it. */
  markNear(section, lane, place) {
    let best = null;
    section.rows.forEach((row, at) => {
      if (isGap(row) || row[0] !== lane) return;
      if (best === null || Math.abs(at - place) < Math.abs(best - place)) best = at;
    });
    return best;
  }

  facts(section, found, lane) {
    const { attributes } = found;
    const owner = attributes["tenure.owner.epoch"];
    const facts = [
      ["run", lane.run],
      ["process", section.processes[lane.process]],
      ["position", found.seq === null ? "not counted" : `seq ${found.seq}`],
      ["owner then", owner === undefined ? "not recorded" : `epoch ${owner}${owner === lane.epoch ? ", this run" : ""}`],
    ];
    if (found.time) facts.push(["clock", new Date(found.time / 1000).toISOString()]);
    return this.table(facts);
  }

  writes(attributes) {
    const keys = attributes["tenure.write.keys"];
    if (!keys || !keys.length) return [];
    const epochs = attributes["tenure.write.epochs"] ?? [];
    const rows = keys.map((key, at) => [key, `staged by epoch ${epochs[at]}`]);
    const omitted = attributes["tenure.write.omitted"];
    if (omitted) rows.push([`… and ${omitted} more`, ""]);
    return [element("h4", {}, "keys"), this.table(rows)];
  }

  table(rows, kind = "") {
    return element("table", { class: kind },
      element("tbody", {}, ...rows.map(([name, value]) =>
        element("tr", {}, element("th", { scope: "row" }, name),
          element("td", {}, Array.isArray(value) ? value.join(", ") : String(value))))));
  }
}

function clause(text) {
  const [word] = text.split(/[ ,]/, 1);
  // Keys stand between backticks.
  const parts = text.slice(word.length).split("`");
  const shown = parts.map((part, at) => (at % 2 && at < parts.length - 1 ? element("code", {}, part) : part));
  return element("p", { class: "clause" }, element("b", {}, word), ...shown);
}
