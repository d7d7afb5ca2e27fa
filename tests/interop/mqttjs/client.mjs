// MQTT.js behind a queue of events, so that a test waits for events and never for time.
import { randomUUID } from "node:crypto";
import { connect } from "mqtt";

export const url = process.env.MQTT_URL;
if (!url) throw new Error("MQTT_URL names the broker; launch.py sets it");

const DEADLINE_MS = 10_000;

export const versions = { 3: "3.1", 4: "3.1.1", 5: "5.0" };

/** A prefix for topics and client ids that no other test has. */
export function uniqueName() {
  return `j${randomUUID().slice(0, 10)}`;
}

/** Rejects when the promise takes too long. */
export function withDeadline(promise, what, ms = DEADLINE_MS) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what}: nothing within ${ms} ms`)), ms);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** A queue that hands out what arrived, or what will arrive. */
export class Mailbox {
  #arrived = [];
  #waiting = [];

  put(item) {
    const waiter = this.#waiting.shift();
    if (waiter) waiter(item);
    else this.#arrived.push(item);
  }

  take(what = "message", ms = DEADLINE_MS) {
    if (this.#arrived.length > 0) return Promise.resolve(this.#arrived.shift());
    return withDeadline(new Promise((resolve) => this.#waiting.push(resolve)), what, ms);
  }

  get length() {
    return this.#arrived.length;
  }
}

/** One MQTT.js client that never connects again by itself. */
export class Client {
  messages = new Mailbox();
  disconnects = new Mailbox();
  closed = new Mailbox();

  static async connect(options) {
    const client = new Client();
    const version = options.protocolVersion ?? 5;
    client.mqtt = connect(url, {
      reconnectPeriod: 0,
      resubscribe: false,
      ...(version === 3 ? { protocolId: "MQIsdp" } : {}),
      ...options,
      protocolVersion: version,
    });
    client.mqtt.on("message", (topic, payload, packet) => {
      client.messages.put({
        topic,
        payload: payload.toString(),
        bytes: payload,
        qos: packet.qos,
        retain: packet.retain,
        properties: packet.properties ?? {},
      });
    });
    client.mqtt.on("disconnect", (packet) => client.disconnects.put(packet.reasonCode));
    client.mqtt.on("close", () => client.closed.put(true));
    client.connack = await withDeadline(
      new Promise((resolve, reject) => {
        client.mqtt.once("connect", resolve);
        client.mqtt.once("error", reject);
      }),
      "CONNACK",
    );
    client.mqtt.on("error", () => undefined);
    return client;
  }

  async subscribe(filters, options = { qos: 0 }) {
    const granted = await withDeadline(this.mqtt.subscribeAsync(filters, options), "SUBACK");
    return granted.map((each) => each.qos);
  }

  unsubscribe(filter) {
    return withDeadline(this.mqtt.unsubscribeAsync(filter), "UNSUBACK");
  }

  publish(topic, payload, options = {}) {
    return withDeadline(this.mqtt.publishAsync(topic, payload, options), "end of the publish");
  }

  next(what) {
    return this.messages.take(what);
  }

  async take(count) {
    const taken = [];
    for (let index = 0; index < count; index += 1) taken.push(await this.next());
    return taken;
  }

  /** Everything up to the end marker. */
  async until(payload) {
    const taken = [];
    for (;;) {
      const message = await this.next(payload);
      if (message.payload === payload) return taken;
      taken.push(message);
    }
  }

  /** Leaves with a DISCONNECT. */
  end(options = {}) {
    return withDeadline(this.mqtt.endAsync(false, options), "end");
  }

  /** Drops the connection without a word. */
  async kill() {
    this.mqtt.stream.destroy();
    await this.closed.take("close");
    await this.mqtt.endAsync(true);
  }
}

/** Connects clients and ends them with the test. */
export function clientsOf(context) {
  const clients = [];
  context.after(() => Promise.all(clients.map((client) => client.mqtt.endAsync(true))));
  return async (options = {}) => {
    const client = await Client.connect(options);
    clients.push(client);
    return client;
  };
}
