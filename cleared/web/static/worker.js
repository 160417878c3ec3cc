// Says that the server cannot be reached, in place of the browser's own page. It keeps nothing of the books.
"use strict";

const OFFLINE = `<!doctype html><html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1"><title>Not reached · cleared</title>
<style>body{font:16px/1.5 system-ui;max-width:34rem;margin:12vh auto;padding:0 1rem;color-scheme:light dark}</style>
<h1>The server was not reached</h1>
<p>There is no connection, or cleared server does not run. Nothing that you sent after that was done: look at it again
once it answers.</p><p><a href="">Try again</a></p></html>`;

self.addEventListener("install", () => self.skipWaiting());
self.addEventListener("activate", (event) => event.waitUntil(self.clients.claim()));
self.addEventListener("fetch", (event) => {
  // What is sent, such as a file, is left to the browser: passed on from here it would be sent from a copy.
  if (event.request.mode !== "navigate" || event.request.method !== "GET") return;
  const headers = {"Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"};
  event.respondWith(fetch(event.request).catch(() => new Response(OFFLINE, {status: 503, headers})));
});

// A message says how many cards wait; a tap on it opens the queue, in the window that has signed in, if there is one.
const readPlace = (text) => (/^\/w\/[\w.~%-]+$/.test(text) ? text : "");

self.addEventListener("push", (event) => {
  let said = {};
  try { said = event.data.json(); } catch { /* not ours: it is told that something waits */ }
  const place = readPlace(said.place);
  event.waitUntil(self.registration.showNotification(String(said.title ?? "cleared"), {
    body: String(said.body ?? "Cards wait"), tag: `cards${place}`, icon: "/static/icon.png", data: {place},
  }));
});

async function openQueue(place) {
  for (const client of await self.clients.matchAll({type: "window", includeUncontrolled: true})) {
    const home = /^\/s\/[\w-]+/.exec(new URL(client.url).pathname);
    if (!home) continue;
    await client.focus().catch(() => {});
    if (await client.navigate(`${home[0]}${place}/queue`).catch(() => null)) return;
  }
  await self.clients.openWindow(`/login?to=${encodeURIComponent(`${place}/queue`)}`);
}
self.addEventListener("notificationclick", (event) => {
  event.notification.close();
  event.waitUntil(openQueue(readPlace(event.notification.data?.place)));
});
