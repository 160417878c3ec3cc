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
  if (event.request.mode !== "navigate") return;
  const headers = {"Content-Type": "text/html; charset=utf-8",
    "Content-Security-Policy": "default-src 'none'; style-src 'unsafe-inline'"};
  event.respondWith(fetch(event.request).catch(() => new Response(OFFLINE, {status: 503, headers})));
});
