// What HTML cannot do by itself: copying, a shortcut, the number beside a slider, menus that close. Pages read without it.
"use strict";
document.documentElement.classList.add("script");

const say = (text) => { document.getElementById("said").textContent = text; };

document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (button) {
    await navigator.clipboard.writeText(button.dataset.copy);
    say("Copied");
    button.classList.add("done");
    setTimeout(() => button.classList.remove("done"), 1500);
  }
  for (const menu of document.querySelectorAll("details.menu[open]")) {
    if (!menu.contains(event.target)) menu.open = false;
  }
});

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    const menu = event.target.closest("details.menu[open]") || document.querySelector("details.menu[open]");
    if (menu) { menu.open = false; menu.querySelector("summary").focus(); }
  }
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    const box = document.getElementById("q");
    if (box) box.focus(); else if (document.querySelector("nav.pages")) location.assign("/search");
  }
});

document.addEventListener("input", (event) => {
  if (event.target.type === "range") {
    const output = document.querySelector(`output[for="${event.target.id}"]`);
    if (output) output.textContent = event.target.value;
  }
});

// The tree scrolls in a box of its own on narrow screens: what is chosen is to be seen there.
const showChosen = () => {
  const tree = document.getElementById("tree");
  const chosen = tree && tree.querySelector("[aria-current]");
  if (chosen && tree.scrollHeight > tree.clientHeight) {
    const from = chosen.getBoundingClientRect(), box = tree.getBoundingClientRect();
    tree.scrollTop += from.top - box.top - (box.height - from.height) / 2;
  }
};
document.addEventListener("DOMContentLoaded", showChosen);
document.addEventListener("htmx:oobAfterSwap", showChosen);

// "Load more" goes when it has done its work: the first new card has the focus then.
let cardsBefore = null;
const cards = () => document.querySelectorAll("#cards > .card");
document.addEventListener("htmx:beforeRequest", (event) => {
  cardsBefore = event.target.closest(".more") ? cards().length : null;
});
document.addEventListener("htmx:afterSettle", () => {
  const all = cards();
  if (cardsBefore === null || all.length <= cardsBefore) return;
  all[cardsBefore].focus();
  say(`${all.length - cardsBefore} more statements, ${all.length} in all`);
  cardsBefore = null;
});

// htmx shows no answer to an error by itself: the page that it would have been is shown instead.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.xhr.status >= 400) {
    event.detail.shouldSwap = true;
    event.detail.isError = false;
    if (event.detail.xhr.status !== 422) event.detail.selectOverride = "unset"; // which is the page itself, with a note
  }
});
document.addEventListener("htmx:beforeRequest", (event) => { event.detail.target.setAttribute("aria-busy", "true"); });
document.addEventListener("htmx:afterRequest", (event) => {
  event.detail.target.removeAttribute("aria-busy");
  if (event.detail.xhr.status) document.getElementById("gone").hidden = true;
});
document.addEventListener("htmx:sendError", () => { document.getElementById("gone").hidden = false; });

// The access key that came with the address stays neither there nor in the way back.
if (location.pathname === "/login" && location.search) history.replaceState(null, "", "/login");
