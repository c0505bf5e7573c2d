"use strict";

/* What the page is made of: the report's data, and how elements are made.
   Strangers' text enters the page as text nodes only, never as markup. */

const DATA = JSON.parse(document.getElementById("data").textContent);
const SEVERITIES = ["violation", "warning", "averted", "information"];
const HARMLESS = new Set(["averted", "information"]);
const GLYPHS = { violation: "✗", warning: "!", averted: "✓", information: "i" };
const EPOCH_COLOURS = 6;

const byId = (id) => document.getElementById(id);

function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) {
        made.addEventListener(event, listener);
      }
    } else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== ""));
  return made;
}

function drawn(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

/* A row is a list: [process, first, last] for a gap, longer for an operation. */
const isGap = (row) => row.length === 3;

const operation = (row) => ({
  lane: row[0], kind: DATA.kinds[row[1]], seq: row[2], says: row[3], time: row[4],
  span: row[5], trace: row[6], spanId: row[7], attributes: row[8], findings: row[9],
});

const epochClass = (epoch) => {
  const number = Number(epoch) % EPOCH_COLOURS;
  return `epoch-${number < 0 ? number + EPOCH_COLOURS : number}`;
};

const gapText = (section, [process, first, last]) =>
  `seq ${first === last ? first : `${first}–${last}`} of process ${section.processes[process]} ` +
  `${first === last ? "is" : "are"} not in this report`;

const several = (number, word) => `${number} ${word}${number === 1 ? "" : "s"}`;

function seqText(section, row) {
  if (isGap(row)) return "…";
  const seq = row[2] === null ? "?" : row[2];
  if (section.processes.length < 2) return String(seq);
  return `p${section.lanes[row[0]].process + 1}:${seq}`;
}

/* How many items of a sorted list are smaller. */
function countBelow(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}
