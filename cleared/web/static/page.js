// What a page does beyond its forms and links. Everything works without it, but for the keys, the swipes and being live.
"use strict";

function press(selector, first = "input:not([type=hidden]), button:enabled") {
  const element = document.querySelector(selector);
  if (!element) return false;
  if (element.tagName === "SUMMARY") {
    element.parentElement.open = true;
    element.parentElement.scrollIntoView({block: "nearest"});
    const field = element.parentElement.querySelector(first);
    if (field) field.focus();
  } else {
    element.click();
  }
  return true;
}

// A link that signs in carries its code behind the #, which no server and no log ever sees.
function signIn() {
  const form = document.getElementById("sign-in");
  if (form && location.hash.length > 1) {
    form.querySelector("#code").value = decodeURIComponent(location.hash.slice(1));
    history.replaceState(null, "", location.pathname);
    form.submit();
  }
}

// Back out of what was opened: the panel is closed, and the keyboard is where it was opened from.
function leavePanel(target, typing) {
  const panel = target.closest("details[open]") ?? (typing ? null : document.querySelector("details.panel[open]"));
  if (panel) {
    panel.open = false;
    panel.querySelector("summary").focus();
  } else if (typing) {
    typing.blur();
  }
  return panel || typing;
}

// One key each, as in the terminal. Nothing is decided by the letters of a word that missed its field, nor by a key or a
// tap about a card that has just taken the place of another.
const WORD_MS = 1000, NEW_CARD_MS = 700;
let wordAt = -WORD_MS, newCardAt = -NEW_CARD_MS;
document.addEventListener("keydown", (event) => {
  const found = event.key === "Enter" && event.target.id === "q" ? document.querySelectorAll("#accounts button") : [];
  if (found.length === 1) { // the only account that fits
    event.preventDefault();
    found[0].click();
    return;
  }
  const typing = event.target.closest("input, select, textarea");
  const isOver = document.querySelector("dialog[open]"); // nothing is decided behind the list of keys
  if (event.key === "Escape" && !isOver && leavePanel(event.target, typing)) return;
  if (typing || isOver || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (event.key === "?") return showKeys();
  if (event.key === "Escape") return void press('[data-key="Escape"]'); // no letter of a word
  const key = /^[a-z0-9]$/.test(event.key) ? event.key : "";
  if (!key || event.timeStamp - newCardAt < NEW_CARD_MS) return;
  if (event.timeStamp - wordAt < WORD_MS || !document.querySelector(`[data-key="${key}"]`)) wordAt = event.timeStamp;
  else if (press(`[data-key="${key}"]`)) event.preventDefault();
});

// The keys of this page, and what each does.
function showKeys() {
  const dialog = document.createElement("dialog"), list = document.createElement("dl");
  const title = document.createElement("h2"), close = document.createElement("button");
  const keys = new Map();
  for (const element of document.querySelectorAll("[data-key]")) {
    if (!keys.has(element.dataset.key)) keys.set(element.dataset.key, element.textContent.trim());
  }
  keys.set("?", "These keys");
  for (const [key, text] of keys) {
    for (const [name, said] of [["dt", key], ["dd", text]]) {
      const part = document.createElement(name);
      part.textContent = said;
      list.append(part);
    }
  }
  title.textContent = "Keys";
  close.textContent = "Close";
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => dialog.remove());
  dialog.append(title, list, close);
  document.body.append(dialog);
  dialog.showModal();
}

// A thumb: right approves, left opens the rejection, down puts off.
const FAR = 90;
let start = null;
document.addEventListener("touchstart", (event) => {
  const card = event.target.closest("#card");
  const inTable = event.target.closest(".scroll, a");
  start = card && !inTable && event.touches.length === 1
    ? {card, x: event.touches[0].clientX, y: event.touches[0].clientY, top: window.scrollY === 0} : null;
}, {passive: true});
document.addEventListener("touchmove", (event) => {
  if (!start) return;
  const x = event.touches[0].clientX - start.x;
  if (Math.abs(x) > Math.abs(event.touches[0].clientY - start.y)) {
    start.card.classList.add("away");
    start.card.style.setProperty("transform", `translateX(${x}px) rotate(${x / 40}deg)`);
  }
}, {passive: true});
document.addEventListener("touchend", (event) => {
  if (!start) return;
  const x = event.changedTouches[0].clientX - start.x, y = event.changedTouches[0].clientY - start.y;
  const {card, top} = start;
  start = null;
  card.classList.remove("away");
  card.style.removeProperty("transform");
  if (event.timeStamp - newCardAt < NEW_CARD_MS) return;
  if (Math.abs(x) > FAR && Math.abs(x) > 2 * Math.abs(y)) press(`[data-swipe="${x > 0 ? "right" : "left"}"]`, "button:enabled"); // no keyboard over it
  else if (top && y > 1.5 * FAR && y > 2 * Math.abs(x)) press('[data-swipe="down"]');
});

// A form may be answered by the page that it leads to, which is one way to the server less: that page has its address
// from here, so that loading it anew sends no form.
const address = document.body.dataset.address;
if (address) history.replaceState(null, "", address);

// A second tap on the way to the server decides nothing twice. Something moves until its answer is there.
document.addEventListener("submit", (event) => {
  const form = event.target, isNew = event.timeStamp - newCardAt < NEW_CARD_MS;
  if (form.dataset.sent || (isNew && form.elements.card)) event.preventDefault();
  if (event.defaultPrevented || form.method !== "post") return;
  form.dataset.sent = "yes";
  document.body.classList.add("waits");
  if (!form.elements["at-once"]) {
    const field = document.createElement("input");
    Object.assign(field, {type: "hidden", name: "at-once", value: "yes"});
    form.append(field);
  }
});
window.addEventListener("pageshow", () => {
  document.body.classList.remove("waits");
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

// Bank files dropped anywhere on the page that takes them. What a live page has put in the place of its forms counts.
const findDrop = () => document.getElementById("drop");
document.addEventListener("dragover", (event) => {
  if (!findDrop()) return;
  event.preventDefault();
  document.body.classList.add("dropping");
});
document.addEventListener("dragleave", () => document.body.classList.remove("dropping"));
document.addEventListener("drop", (event) => {
  const drop = findDrop();
  if (!drop) return;
  event.preventDefault();
  document.body.classList.remove("dropping");
  if (!event.dataTransfer.files.length) return;
  drop.querySelector("#files").files = event.dataTransfer.files;
  drop.requestSubmit(drop.querySelector("button"));
});

// How much of an entry is left to place, while its parts are typed: in whole cents, as decimals do not add up.
function toCents(text, places) {
  const match = /^(-?)(\d+)(?:\.(\d+))?$/.exec(text.trim().replace(/^-?\d{1,3}(,\d{3})+(?!\d)|^-?\d{1,3}([\s’']\d{3})+/, (whole) => whole.replace(/[,\s’']/g, "")));
  return match && (match[3] ?? "").length <= places ? BigInt(match[1] + match[2] + (match[3] ?? "").padEnd(places, "0")) : 0n;
}
function showLeft(form) {
  const places = (form.dataset.whole.split(".")[1] ?? "").length;
  let left = toCents(form.dataset.whole, places);
  for (const field of form.querySelectorAll("[name=part_amount]")) left -= toCents(field.value, places);
  const digits = String(left < 0n ? -left : left).padStart(places + 1, "0");
  const units = digits.slice(0, digits.length - places).replace(/\B(?=(\d{3})+$)/g, form.dataset.thousands);
  const text = places ? `${units}.${digits.slice(-places)}` : units;
  form.querySelector(".left").textContent = left < 0n ? `${text} too much` : `${text} left to place`;
}
const showAllLeft = () => document.querySelectorAll("form[data-whole]").forEach(showLeft);
document.addEventListener("input", (event) => { if (event.target.form?.dataset.whole) showLeft(event.target.form); });
showAllLeft();

// A picture that was taken, or a file that was chosen, is kept at once.
document.addEventListener("change", (event) => {
  if (event.target.type === "file" && event.target.files.length && event.target.closest("[data-sends]")) event.target.form.requestSubmit();
});

// What a choice makes of a file is shown at once.
document.addEventListener("change", (event) => {
  if (event.target.tagName === "SELECT" && event.target.closest("[data-shows]")) event.target.form.requestSubmit();
});

// Somebody has typed or chosen something: it is not taken away by what changes meanwhile.
for (const kind of ["input", "change"]) {
  document.addEventListener(kind, (event) => { if (event.target.form?.method === "post") event.target.form.dataset.begun = "yes"; });
}

// Where the keyboard is, for what takes the place of the page: the same link, or the same button of the same form.
const describeFocus = (element) => element.cloneNode(false).outerHTML
  + (element.form ? element.form.outerHTML : element.tagName === "SUMMARY" ? element.textContent : "");
const findAlike = (tag, told) => [...document.querySelectorAll(`#main ${tag}`)].filter((each) => describeFocus(each) === told);
function findFocus() {
  const element = document.activeElement;
  if (!element.closest("#main")) return null;
  const tag = element.tagName.toLowerCase(), told = describeFocus(element);
  return {tag, told, number: findAlike(tag, told).indexOf(element)};
}
function keepFocus(before) {
  const alike = findAlike(before.tag, before.told);
  (alike[before.number] ?? alike[0] ?? document.getElementById("main")).focus({preventScroll: true});
}

// Live: the page shows what has changed, unless somebody is in the middle of something.
function watch() {
  const main = document.getElementById("main");
  if (!main || !main.dataset.live || !window.EventSource) return;
  const away = document.createElement("p");
  away.className = "message problem";
  away.textContent = "The server is not reached: there is no connection, or it does not run. What stands here may be old.";
  const events = new EventSource(main.dataset.live);
  const isBegun = "details[open], [data-begun], form[data-sent], form[data-passkey], input:focus, select:focus, "
    + "textarea:focus, textarea:not(:placeholder-shown)";
  const busy = () => start || document.querySelector(isBegun);
  const shownCard = () => document.getElementById("card")?.dataset.card;
  let cardBefore = shownCard(), focusBefore = null, said = null, isLeaving = false;
  document.addEventListener("htmx:after:request", (event) => {
    if (isLeaving) event.preventDefault(); // the page is loaded anew already, and what it is told is told once
    else if (event.detail.ctx.hx.refresh) {
      isLeaving = true;
      events.close();
    }
  });
  document.addEventListener("htmx:before:swap", (event) => {
    if (event.detail.tasks.some((each) => each.target?.id === "main") && busy()) event.preventDefault(); // somebody began
    else {
      focusBefore = findFocus();
      said = document.querySelector(".messages"); // of the last act: it stays until another page comes
    }
  });
  document.addEventListener("htmx:after:swap", () => {
    if (shownCard() !== cardBefore) newCardAt = performance.now();
    cardBefore = shownCard();
    if (said) document.querySelector(".messages")?.replaceWith(said);
    said = null;
    if (focusBefore) keepFocus(focusBefore);
    focusBefore = null;
    showAllLeft();
  });
  const refresh = () => htmx.ajax("GET", location.href, {target: "#main", select: "#main", swap: "outerHTML"});
  events.onmessage = () => { if (!busy()) refresh(); };
  events.addEventListener("step", () => { if (document.querySelector("[data-steps]") && !busy()) refresh(); });
  events.addEventListener("end", () => location.reload()); // signed out, here or by time
  events.onerror = async () => { // the browser tries again by itself, but for what answers with no stream
    const isOver = events.readyState === EventSource.CLOSED;
    // As a page that looks for news: what a form on its way is answered with is told once, and not to this.
    const asked = fetch(isOver ? location.href : "/healthz", {headers: {"HX-Request": "true"}});
    const answer = await asked.catch(() => null);
    if (!answer) document.querySelector(".messages")?.append(away);
    else if (isOver && answer.redirected) location.reload(); // to signing in: the server was started anew, say
  };
  events.onopen = () => away.remove();
  window.addEventListener("pagehide", () => events.close());
}

// Where the server cannot be reached, a page says so. A browser that is told not to keep anything has no workers.
navigator.serviceWorker?.register(document.querySelector("meta[name=worker]").content, {scope: "/"}).catch(() => {});

const meant = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
if (meant?.tagName === "DETAILS") meant.open = true;
if (address && meant) meant.scrollIntoView();
signIn();
window.addEventListener("hashchange", signIn); // a link pasted where this form is shown
watch();
document.querySelector("nav [aria-current]")?.scrollIntoView({block: "nearest", inline: "center"});
