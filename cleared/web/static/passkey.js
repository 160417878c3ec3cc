// Has the browser make a passkey, or sign with one, and sends the form with what it gave.
"use strict";

const toBytes = (text) => Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
const toText = (data) => btoa(String.fromCharCode(...new Uint8Array(data)))
  .replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");

async function ask(form) {
  const options = JSON.parse(form.dataset.options);
  options.challenge = toBytes(options.challenge);
  if (form.dataset.passkey === "create") {
    options.user.id = toBytes(options.user.id);
    const made = await navigator.credentials.create({publicKey: options});
    return {
      id: made.id, rawId: toText(made.rawId), type: made.type,
      response: {clientDataJSON: toText(made.response.clientDataJSON),
        attestationObject: toText(made.response.attestationObject)},
    };
  }
  options.allowCredentials = options.allowCredentials.map((each) => ({...each, id: toBytes(each.id)}));
  const got = await navigator.credentials.get({publicKey: options});
  return {id: got.id, authenticatorData: toText(got.response.authenticatorData),
    clientDataJSON: toText(got.response.clientDataJSON), signature: toText(got.response.signature)};
}

async function answer(form) {
  const button = form.querySelector("button"), problem = form.querySelector(".problem");
  button.disabled = true;
  problem.hidden = true;
  try {
    if (!window.PublicKeyCredential) throw new Error("this browser knows no passkeys, or not on this page");
    form.querySelector("[name=answer]").value = JSON.stringify(await ask(form));
    form.submit();
  } catch (error) {
    problem.textContent = `The passkey did not answer: ${error.message}`;
    problem.hidden = false;
    button.disabled = false;
    button.focus();
  }
}

// Until here the buttons are disabled: a form that is sent without its passkey is refused.
for (const form of document.querySelectorAll("form[data-passkey]")) {
  form.addEventListener("submit", (event) => { event.preventDefault(); answer(form); });
  window.addEventListener("pageshow", (event) => { if (event.persisted) form.querySelector("button").disabled = false; });
  if (form.dataset.begin) answer(form);
  else form.querySelector("button").disabled = false;
}

// The code of an invitation stands behind the #, which no server and no log ever sees.
const invited = document.getElementById("invited");
if (invited && location.hash.length > 1) {
  invited.querySelector("#code").value = decodeURIComponent(location.hash.slice(1));
  history.replaceState(null, "", location.pathname);
  invited.submit();
}
