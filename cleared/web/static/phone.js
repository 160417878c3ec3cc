// Asks the browser for messages to this phone. The button is there only where the browser can have them.
"use strict";

const form = document.getElementById("phone");
const button = form.querySelector("button");
const problem = form.querySelector(".problem");

function tell(text) {
  problem.textContent = text;
  problem.hidden = false;
}

function findObstacle() {
  const isApple = /iPhone|iPad/.test(navigator.userAgent);
  if (isApple && !window.PushManager) return "On an iPhone or iPad: share this page, choose “Add to Home Screen”, and open it from there.";
  if (!navigator.serviceWorker || !window.PushManager || !window.Notification) return "This browser has no messages, or not on this page: it takes a page on localhost, or by https.";
  if (Notification.permission === "denied") return "Messages of this page are forbidden in the browser: allow them in its settings, then load the page again.";
  return "";
}

async function subscribe() {
  if (await Notification.requestPermission() !== "granted") throw new Error("you did not allow them");
  const registration = await navigator.serviceWorker.ready;
  const known = await registration.pushManager.getSubscription();
  if (known && keyOf(known) !== form.dataset.publicKey) await known.unsubscribe(); // of a server with another key
  const bytes = Uint8Array.from(atob(form.dataset.publicKey.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));
  return registration.pushManager.subscribe({userVisibleOnly: true, applicationServerKey: bytes});
}

function keyOf(subscription) {
  const text = String.fromCharCode(...new Uint8Array(subscription.options.applicationServerKey ?? []));
  return btoa(text).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  problem.hidden = true;
  button.disabled = true;
  try {
    form.querySelector("[name=subscription]").value = JSON.stringify(await subscribe());
    form.submit();
  } catch (error) {
    tell(`This phone is not told: ${error.message}`);
    button.disabled = false;
    delete form.dataset.sent;
  }
});

const obstacle = findObstacle();
if (obstacle) tell(obstacle);
button.hidden = obstacle !== "";

// Which of those in the list is the one that shows it.
async function markThisPhone() {
  const known = await (await navigator.serviceWorker?.getRegistration())?.pushManager?.getSubscription();
  if (!known) return;
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(known.endpoint)));
  const id = [...digest.slice(0, 6)].map((each) => each.toString(16).padStart(2, "0")).join("");
  document.querySelector(`[data-phone="${id}"] b`)?.removeAttribute("hidden");
}
markThisPhone().catch(() => {});
