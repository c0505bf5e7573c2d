/* The page as a whole: lists at the side, filters, keys. */

const LISTED = 200;
const PAGE = 250;

class Page {
  constructor() {
    this.section = 0;
    this.finding = null;
    this.page = 0;
    this.listed = LISTED;
    this.details = new Details((place) => { this.grid.select(place); });
    this.grid = new Grid((place) => this.selected(place));
    this.heading();
    this.severities();
    this.kinds();
    this.caveats();
    this.buttons();
    document.addEventListener("keydown", (event) => this.key(event));
    window.addEventListener("hashchange", () => this.fromHash());
    this.theme(stored("tenure-theme") ?? "auto");
    if (!this.fromHash()) this.begin();
  }

  begin() {
    if (DATA.findings.length) this.toFinding(0);
    else if (DATA.sections.length) this.open(0);
    else {
      byId("name").textContent = "Nothing was seen";
      byId("grid").hidden = true;
      this.lists();
    }
  }

  heading() {
    const tones = { clean: "averted", violated: "violation" };
    const glyphs = { clean: "✓", violated: "✗" };
    const verdict = byId("verdict");
    verdict.className = tones[DATA.verdict] ?? "warning";
    verdict.textContent = `${glyphs[DATA.verdict] ?? "?"} ${DATA.verdict}`;
    byId("about").append(
      element("strong", {}, DATA.counted),
      ` in ${several(DATA.operations, "operation")} of ${several(DATA.sections.length, "instance")}`,
      DATA.sources.length ? `, from ${DATA.sources.join(", ")}` : "");
    byId("about").title = DATA.sources.join("\n");
  }

  severities() {
    const counts = {};
    for (const { severity } of DATA.findings) counts[severity] = (counts[severity] ?? 0) + 1;
    byId("severities").append(...SEVERITIES.filter((each) => counts[each]).map((severity) =>
      this.toggle(this.grid.hiddenSeverities, severity, severity,
        element("span", { class: "glyph" }, GLYPHS[severity]), HARMLESS.has(severity) ? `${counts[severity]} ${severity}` : several(counts[severity], severity))));
  }

  kinds() {
    const there = new Set();
    for (const { rows } of DATA.sections) for (const row of rows) if (!isGap(row)) there.add(row[1]);
    byId("kinds").append(...DATA.kinds.map((kind, number) => {
      const button = this.toggle(this.grid.hiddenKinds, number, "", legendShape(kind), kind);
      button.hidden = !there.has(number);
      return button;
    }));
  }

  toggle(hidden, value, kind, ...children) {
    const button = element("button", { type: "button", class: kind, "aria-pressed": "true" }, ...children);
    button.addEventListener("click", () => {
      if (!hidden.delete(value)) hidden.add(value);
      button.setAttribute("aria-pressed", String(!hidden.has(value)));
      this.refresh();
    });
    return button;
  }

  caveats() {
    const said = [
      ...DATA.missing.map((missing) => `missing: ${missing}`),
      ...DATA.left_out.map((left) => `left out: ${left}`),
    ];
    byId("caveats").hidden = !said.length;
    const more = said.length - LISTED;
    byId("caveats").querySelector("ul").append(
      ...said.slice(0, LISTED).map((each) => element("li", {}, each)),
      ...(more > 0 ? [element("li", {}, `${more} more`)] : []));
  }

  buttons() {
    byId("next").addEventListener("click", () => this.nextFinding(1));
    byId("previous").addEventListener("click", () => this.nextFinding(-1));
    byId("as-table").addEventListener("click", () => this.asTable());
    byId("theme").addEventListener("click", () => this.nextTheme());
    byId("keys").addEventListener("click", () => byId("help").showModal());
    for (const id of ["next", "previous"]) byId(id).disabled = !DATA.findings.length;
    byId("filter").addEventListener("input", (event) => {
      this.grid.text = event.target.value.trim().toLowerCase();
      this.refresh();
    });
    byId("find-instance").hidden = DATA.sections.length < 8;
    byId("find-instance").addEventListener("input", () => this.lists());
  }

  refresh() {
    this.page = 0;
    if (DATA.sections.length) this.grid.apply();
    this.lists();
    this.table();
    if (this.grid.shown) this.say(several(this.grid.shown.length, "row"));
  }

  say(text) { byId("status").textContent = text; }

  open(number) {
    this.section = number;
    const section = DATA.sections[number];
    const title = `${section.workflow} / ${section.instance}${section.life > 1 ? ` (${section.life}. of that name)` : ""}`;
    byId("name").textContent = title;
    byId("name").title = section.name;
    const operations = section.rows.filter((row) => !isGap(row)).length;
    byId("facts").textContent = [
      section.engine,
      several(operations, "operation"), several(section.lanes.length, "run"),
      section.processes.length === 1 ? `process ${section.processes[0]}`
        : `${section.processes.length} processes: between them, only epochs say what came first`,
    ].join(" · ");
    byId("grid").setAttribute("aria-label", `Timeline of ${section.name}`);
    this.page = 0;
    this.grid.open(section);
    this.details.nothing(section);
    this.table();
    this.lists();
  }

  selected(place) {
    const section = DATA.sections[this.section];
    const row = section.rows[place];
    const found = isGap(row) ? [] : row[9];
    if (!found.includes(this.finding)) this.finding = found.length ? found[0] : null;
    this.details.show(section, place);
    this.lists();
    this.say(isGap(row) ? "" : `seq ${row[2] ?? "unknown"}, epoch ${section.lanes[row[0]].epoch} ${row[3]}` +
      found.map((number) => `. ${DATA.findings[number].severity}: ${DATA.findings[number].title}`).join(""));
    const at = this.finding === null ? `#at=${this.section}.${place}` : `#finding=${this.finding + 1}`;
    // Once the keys rest: browsers refuse addresses that change too often.
    clearTimeout(this.naming);
    this.naming = setTimeout(() => location.replace(at), 400);
  }

  fromHash() {
    const finding = /^#finding=(\d+)$/.exec(location.hash);
    if (finding) {
      const number = Number(finding[1]) - 1;
      if (!DATA.findings[number]) return false;
      if (number !== this.finding) this.toFinding(number);
      return true;
    }
    const at = /^#at=(\d+)\.(\d+)$/.exec(location.hash);
    if (!at) return false;
    const [section, place] = [Number(at[1]), Number(at[2])];
    if (!DATA.sections[section]?.rows[place]) return false;
    if (section === this.section && place === this.grid.selected) return true;
    this.open(section);
    this.grid.select(place);
    return true;
  }

  toFinding(number) {
    const finding = DATA.findings[number];
    if (finding.section !== this.section || !this.grid.section) this.open(finding.section);
    this.finding = number;
    this.unhide(finding);
    this.grid.select(finding.place);
    if (!byId("table").hidden) this.tableTo(finding.place);
  }

  /* What a finding stands on is shown, whatever was filtered away. */
  unhide(finding) {
    const row = this.grid.section.rows[finding.place];
    if (this.grid.matches(row, finding.place)) return;
    this.grid.text = byId("filter").value = "";
    this.grid.hiddenKinds.delete(row[1]);
    byId("kinds").children[row[1]].setAttribute("aria-pressed", "true");
    this.refresh();
  }

  nextFinding(towards) {
    const count = DATA.findings.length;
    let number = this.finding ?? (towards > 0 ? -1 : count);
    for (let tried = 0; tried < count; tried += 1) {
      number = (number + towards + count) % count;
      if (this.grid.shows(DATA.findings[number])) { this.toFinding(number); return; }
    }
  }

  /* From the culprit to where its arrow points, and back. */
  acrossArrow() {
    if (this.finding === null) return;
    const finding = DATA.findings[this.finding], section = this.grid.section;
    const arrow = section.arrows.find((each) => each[0] === this.finding);
    if (!arrow) return;
    const kept = this.finding;
    const victim = this.details.markNear(section, arrow[3], arrow[4]);
    this.grid.select(this.grid.selected === finding.place ? victim : finding.place);
    this.finding = kept;
    this.lists();
  }

  /* Lists. */

  lists() {
    const shown = DATA.findings.map((_, number) => number)
      .filter((number) => this.grid.shows(DATA.findings[number]));
    const entries = shown.slice(0, this.listed).map((number) => this.findingEntry(number));
    if (shown.length > this.listed) {
      entries.push(element("li", {}, element("button", {
        type: "button", on: { click: () => { this.listed += 1_000; this.lists(); } },
      }, `${shown.length - this.listed} more`)));
    }
    if (!shown.length) entries.push(element("li", {}, element("small", {}, DATA.findings.length ? "hidden" : "none")));
    keepScroll(byId("findings"), entries);
    const wanted = byId("find-instance").value.trim().toLowerCase();
    const sections = DATA.sections.map((_, number) => number)
      .filter((number) => DATA.sections[number].name.toLowerCase().includes(wanted));
    const instances = sections.slice(0, LISTED).map((number) => this.instanceEntry(number));
    if (sections.length > LISTED) instances.push(element("li", {}, element("small", {}, `${sections.length - LISTED} more; filter by name`)));
    keepScroll(byId("instances"), instances);
  }

  findingEntry(number) {
    const finding = DATA.findings[number], section = DATA.sections[finding.section];
    const keys = finding.keys.slice(0, 3).join(", ") + (finding.keys.length > 3 ? ", …" : "");
    const epochs = finding.victim === null || finding.victim === finding.culprit
      ? `epoch ${finding.culprit}` : `epoch ${finding.culprit} → ${finding.victim}`;
    return element("li", { class: finding.severity }, element("button", {
      type: "button", "aria-current": String(number === this.finding), "data-finding": number,
      on: { click: () => this.toFinding(number) },
    },
    element("span", { class: "glyph" }, GLYPHS[finding.severity]), finding.title,
    finding.certainty === "certain" ? "" : ` (${finding.certainty})`,
    element("small", {}, keys ? `${epochs}: ${keys}` : epochs),
    element("small", {}, `${section.workflow} / ${section.instance}`)));
  }

  instanceEntry(number) {
    const section = DATA.sections[number];
    return element("li", { class: section.severity ?? "" }, element("button", {
      type: "button", "aria-current": String(number === this.section), "data-section": number,
      on: { click: () => this.open(number) },
    },
    element("span", { class: "name" },
      section.severity ? element("span", { class: "glyph" }, GLYPHS[section.severity]) : "",
      `${section.workflow} / ${section.instance}${section.life > 1 ? ` (${section.life}.)` : ""}`),
    element("small", {}, `${section.engine} · ${several(section.lanes.length, "run")}`)));
  }

  /* The same as a table, for readers to whom lanes say nothing. */

  asTable() {
    const table = byId("table");
    table.hidden = !table.hidden;
    byId("grid").hidden = !table.hidden;
    byId("as-table").setAttribute("aria-pressed", String(!table.hidden));
    if (table.hidden) { this.grid.layOut(); byId("grid").focus(); } else this.tableTo(this.grid.selected ?? 0);
  }

  tableTo(place) {
    if (!this.grid.section) return;
    this.page = Math.floor(countBelow(this.grid.shown, place) / PAGE);
    this.table();
    byId("table").querySelector('[aria-current="true"]')?.scrollIntoView({ block: "center" });
  }

  table() {
    const holder = byId("table");
    if (holder.hidden || !this.grid.section) return;
    const { section, shown } = this.grid;
    const first = this.page * PAGE, rows = shown.slice(first, first + PAGE);
    const turn = (by, text) => element("button", {
      type: "button", disabled: by < 0 ? this.page === 0 : first + PAGE >= shown.length,
      on: { click: () => { this.page += by; this.table(); } },
    }, text);
    const names = ["position", "epoch", "run", "what happened", "owner then", "findings"];
    holder.replaceChildren(
      element("nav", { "aria-label": "Pages of the table" }, turn(-1, "previous rows"), turn(1, "next rows"),
        `rows ${Math.min(first + 1, shown.length)} to ${first + rows.length} of ${shown.length}`),
      element("table", {},
        element("caption", {}, `Operations of ${section.name}, in their order`),
        element("thead", {}, element("tr", {}, ...names.map((name) => element("th", { scope: "col" }, name)))),
        element("tbody", {}, ...rows.map((place) => this.tableRow(section, place)))));
  }

  tableRow(section, place) {
    const row = section.rows[place];
    if (isGap(row)) {
      return element("tr", {}, element("th", { scope: "row" }, "…"), element("td", { colspan: 5 }, gapText(section, row)));
    }
    const lane = section.lanes[row[0]], found = row[9].map((number) => DATA.findings[number]);
    const open = element("button", {
      type: "button", on: { click: () => { this.grid.select(place); byId("details").focus(); } },
    }, row[3]);
    return element("tr", { "aria-current": String(place === this.grid.selected), class: found.length ? `accused ${found[0].severity}` : "" },
      element("th", { scope: "row" }, seqText(section, row)), element("td", {}, String(lane.epoch)),
      element("td", {}, element("code", {}, lane.run)), element("td", {}, open),
      element("td", {}, String(row[8]["tenure.owner.epoch"] ?? "not recorded")),
      element("td", {}, found.map((each) => `${each.title} (${each.severity}, ${each.certainty})`).join("; ")));
  }

  /* Keys. */

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey || byId("help").open) return;
    const typing = event.target.matches("input");
    if (event.key === "Escape") {
      if (typing) { event.target.value = ""; event.target.dispatchEvent(new Event("input")); }
      (byId("grid").hidden ? byId("table") : byId("grid")).focus();
      return;
    }
    if (typing) {
      if (event.key === "Enter" || event.key === "ArrowDown") { byId("grid").focus(); event.preventDefault(); }
      return;
    }
    const anywhere = {
      "f": () => this.nextFinding(1), "F": () => this.nextFinding(-1), "v": () => this.acrossArrow(),
      "/": () => byId("filter").focus(), "t": () => this.asTable(), "d": () => this.nextTheme(),
      "?": () => byId("help").showModal(),
    }[event.key];
    if (anywhere) { anywhere(); event.preventDefault(); return; }
    // On a button or in the details, arrows and Enter mean what they always mean.
    if (event.target !== byId("grid") && event.target !== document.body) return;
    const rows = Math.max(1, Math.floor(byId("grid").clientHeight / ROW) - 3);
    const inGrid = {
      ArrowDown: () => this.grid.move(1), ArrowUp: () => this.grid.move(-1),
      ArrowRight: () => this.grid.along(1), ArrowLeft: () => this.grid.along(-1),
      PageDown: () => this.grid.move(rows), PageUp: () => this.grid.move(-rows),
      Home: () => this.grid.move(-Infinity), End: () => this.grid.move(Infinity),
      Enter: () => byId("details").focus(), " ": () => byId("details").focus(),
    }[event.key];
    if (inGrid) { inGrid(); event.preventDefault(); }
  }

  theme(name) {
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    byId("theme").textContent = `theme: ${name}`;
    this.themed = name;
  }

  nextTheme() {
    const themes = ["auto", "dark", "light"];
    this.theme(themes[(themes.indexOf(this.themed) + 1) % themes.length]);
    try { localStorage.setItem("tenure-theme", this.themed); } catch { /* not everywhere */ }
  }
}

function keepScroll(list, entries) {
  const focused = list.contains(document.activeElement)
    ? [...list.children].indexOf(document.activeElement.closest("li")) : -1;
  list.replaceChildren(...entries);
  const current = list.querySelector('[aria-current="true"]');
  if (focused >= 0) list.children[focused]?.querySelector("button")?.focus({ preventScroll: true });
  if (!current) return;
  // Only the list itself scrolls, never what is around it.
  const [within, outer] = [current.getBoundingClientRect(), list.getBoundingClientRect()];
  if (within.top < outer.top) list.scrollTop += within.top - outer.top;
  else if (within.bottom > outer.bottom) list.scrollTop += within.bottom - outer.bottom;
}

function stored(name) {
  try { return localStorage.getItem(name); } catch { return null; }
}

document.body.classList.remove("bare");
const PAGE_OBJECT = new Page();
