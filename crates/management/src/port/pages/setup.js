"use strict";

const form = document.getElementById("setup");
const answer = document.getElementById("answer");

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  answer.className = "";
  answer.textContent = "Asking the broker…";
  try {
    const response = await fetch("api/v1/login/setup", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({
        token: new URLSearchParams(location.search).get("t") ?? "",
        name: form.elements.name.value,
        password: form.elements.password.value,
      }),
    });
    const body = await response.json();
    if (response.ok) {
      // The link works once: it has no place in the history.
      history.replaceState(null, "", "./");
      form.replaceChildren();
      const done = document.createElement("p");
      done.className = "good";
      done.textContent = `The administrator ${body.name} exists, and this browser is logged in.`;
      form.append(done);
      return;
    }
    answer.className = "bad";
    answer.textContent = `${body.detail}; ${body.remedy}`;
  } catch {
    answer.className = "bad";
    answer.textContent = "The broker does not answer. Is it running?";
  }
  button.disabled = false;
});
