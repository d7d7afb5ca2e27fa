// A program for test_security_scram.py: logs in by enhanced authentication, MQTT by MQTT.js and SCRAM-SHA-256 by kafkajs,
// and prints one line of JSON about each thing that happened. Arguments: URL, user, password, password of the
// re-authentications, one each.
import { createRequire } from "node:module";
import mqtt from "mqtt";

const require = createRequire(import.meta.url);
const { SCRAM, DIGESTS } = require("kafkajs/src/broker/saslAuthenticator/scram");
const METHOD = "SCRAM-SHA-256";
const CONTINUE = 0x18;
const REAUTHENTICATE = 0x19;
const quiet = { debug() {}, error() {} };

const [url, username, password, ...again] = process.argv.slice(2);
const say = (event) => console.log(JSON.stringify(event));

/** One exchange: takes what the server says and gives what the client says next. */
class Exchange {
  #heard;
  #said;

  constructor(secret) {
    this.first = new Promise((resolve) => (this.#said = resolve));
    const exchange = ({ request, response }) => this.#exchange(request, response);
    const sasl = { username, password: secret };
    this.done = new SCRAM(sasl, "broker", 0, quiet, exchange, DIGESTS.SHA256).authenticate();
    // Read once the broker has sent its last message.
    this.done.catch(() => {});
  }

  /** The server's message in; the client's next one out, if there is one. */
  hear(data) {
    const next = new Promise((resolve) => (this.#said = resolve));
    this.#heard(data);
    return next;
  }

  async #exchange(request, response) {
    // kafkajs puts a length of four bytes in front of each message.
    const message = await request.encode();
    const answer = new Promise((resolve) => (this.#heard = resolve));
    this.#said(message.subarray(4));
    const data = await answer;
    const length = Buffer.alloc(4);
    length.writeInt32BE(data.length);
    return response.parse(await response.decode(Buffer.concat([length, data])));
  }
}

async function verdict(exchange, data) {
  if (data) exchange.hear(data);
  return exchange.done.then(
    () => "verified",
    (error) => error.message,
  );
}

let exchange = new Exchange(password);
const packet = (data, reasonCode) => ({
  cmd: "auth",
  reasonCode,
  properties: { authenticationMethod: METHOD, authenticationData: data },
});
const client = mqtt.connect(url, {
  protocolVersion: 5,
  reconnectPeriod: 0,
  connectTimeout: 8_000,
  clientId: `scram-${process.pid}`,
  properties: { authenticationMethod: METHOD, authenticationData: await exchange.first },
});

async function reauthenticate() {
  const secret = again.shift();
  if (secret === undefined) {
    client.end();
    return;
  }
  exchange = new Exchange(secret);
  client._sendPacket(packet(await exchange.first, REAUTHENTICATE));
}

client.handleAuth = async (heard, answer) => {
  const data = heard.properties?.authenticationData;
  if (heard.reasonCode === CONTINUE) {
    say({ event: "challenge", data: data.toString() });
    answer(null, packet(await exchange.hear(data), CONTINUE));
    return;
  }
  say({ event: "reauthenticated", server: await verdict(exchange, data) });
  answer(null);
  // Nothing was lost meanwhile.
  await client.publishAsync(`scram/${username}`, "again", { qos: 1 });
  await reauthenticate();
};
client.on("message", (topic, payload) => say({ event: "message", topic, payload: payload.toString() }));
client.on("connect", async (connack) => {
  const server = await verdict(exchange, connack.properties?.authenticationData);
  say({ event: "connected", server });
  await client.subscribeAsync(`scram/${username}`, { qos: 1 });
  await client.publishAsync(`scram/${username}`, "first", { qos: 1 });
  await reauthenticate();
});
client.on("disconnect", (heard) => say({ event: "disconnect", code: heard.reasonCode }));
client.on("error", (error) => say({ event: "error", code: error.code }));
client.on("close", () => process.exit(0));
