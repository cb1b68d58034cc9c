"use strict";
// A new page at most every ten seconds: drawing it is a load on this machine.
const every = 10000;
const status = document.getElementById("status"), follow = document.getElementById("follow"), reports = document.getElementById("reports");
const title = reports.dataset.title;
let frame = null, shown = 0, newest = 0, last = 0, loading = false;

// refresh shows the newest report. It is made ready beneath the one that is read,
// and begins where the reader is in that: a reader never sees an empty frame.
async function refresh() {
  if (loading || newest === shown || Date.now() - last < every) return;
  if (frame && (!follow.checked || frame.contentWindow.cnibenchView?.busy())) return;
  loading = true;
  last = Date.now();
  const version = newest, next = document.createElement("iframe");
  next.title = title;
  next.inert = true;
  next.src = "report?" + version;
  reports.prepend(next);
  if (await ready(next)) {
    if (frame) await asRead(frame.contentWindow.cnibenchView, next.contentWindow.cnibenchView);
    next.inert = false;
    frame?.remove();
    frame = next;
    shown = version;
    document.getElementById("before")?.remove();
  } else next.remove();
  loading = false;
}

// asRead makes the newer report look as the reader has made the older one; a report
// that could not show its charts has no view.
async function asRead(older, newer) {
  if (!older || !newer) return;
  for (let chosen = ""; chosen !== JSON.stringify(older.get());) {
    while (older.busy()) await pause(200);
    chosen = JSON.stringify(older.get());
    await newer.set(JSON.parse(chosen));
  }
  newer.goTo(older.place());
}

const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));

// ready waits until a report can be used and is drawn; false: it did not come.
async function ready(next) {
  await new Promise((done) => { next.onload = done; });
  for (let began = Date.now(); Date.now() - began < 60000; await pause(50)) {
    const root = next.contentDocument?.documentElement;
    if (!root || !next.contentDocument.getElementById("data")) return false;
    if (root.dataset.failed || (root.dataset.ready && root.dataset.drawn)) return true;
  }
  return false;
}

const events = new EventSource("events");
events.onmessage = (e) => {
  const s = JSON.parse(e.data);
  newest = s.version;
  status.textContent = s.done + " samples measured, at most " + s.left + " to come; block " + s.block + (s.trouble ? "; no page: " + s.trouble : "");
  if (s.ended) {
    status.textContent = s.done + " samples measured; the run has ended, and its whole report is report.html in its directory";
    events.close();
  }
  refresh();
};
events.onerror = () => { status.textContent = "the run does not answer: it has ended, or was killed"; };
setInterval(refresh, 1000);
