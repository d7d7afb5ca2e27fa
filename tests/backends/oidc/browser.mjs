// What a browser and a person do at the provider: node browser.mjs ADDRESS NAME
// Follows redirects, enters the name, consents, and prints the address of the broker that it is sent back to.
const [, , start, name] = process.argv;
const cookies = new Map();
const home = new URL(start).origin;

async function send(address, options = {}) {
  const cookie = [...cookies].map(([key, value]) => `${key}=${value}`).join("; ");
  const answer = await fetch(address, { redirect: "manual", ...options, headers: { ...options.headers, cookie } });
  for (const line of answer.headers.getSetCookie()) {
    const [key, value] = line.split(";")[0].split("=");
    cookies.set(key, value);
  }
  return answer;
}

let address = start;
for (let step = 0; step < 20; step++) {
  if (new URL(address).origin !== home) {
    console.log(address);
    process.exit(0);
  }
  let answer = await send(address);
  if (answer.status === 200) {
    const page = await answer.text();
    const prompt = page.match(/name="prompt" value="(\w+)"/)?.[1];
    if (!prompt) throw new Error(page);
    const form = new URLSearchParams({ prompt, login: name, password: "any" });
    answer = await send(address, { method: "POST", body: form });
  }
  const next = answer.headers.get("location");
  if (!next) throw new Error(`${answer.status} ${await answer.text()}`);
  address = new URL(next, address).href;
}
throw new Error("too many steps");
