"use strict";
// A new page at most every ten seconds: drawing it is a load on this machine.
const every = 10000;
const status = document.getElementById("status"), frame = document.getElementById("report"), follow = document.getElementById("follow");
let shown = 0, newest = 0, last = 0;
function refresh() {
  if (newest === shown || (shown > 0 && (!follow.checked || Date.now() - last < every))) return;
  const y = shown > 0 && frame.contentWindow ? frame.contentWindow.scrollY : 0;
  shown = newest;
  last = Date.now();
  frame.onload = () => frame.contentWindow.scrollTo(0, y);
  frame.src = "report?" + shown;
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
