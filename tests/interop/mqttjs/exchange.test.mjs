// MQTT.js 3.1, 3.1.1 and 5.0: messages, retained messages, wills, sessions, shared subscriptions.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect as connectTcp } from "node:net";
import { test } from "node:test";
import { clientsOf, uniqueName, url, versions, withDeadline } from "./client.mjs";

const kept = (protocolVersion) => ({
  clean: false,
  ...(protocolVersion === 5 ? { properties: { sessionExpiryInterval: 60 } } : {}),
});

for (const protocolVersion of [3, 4, 5]) {
  const title = (text) => `MQTT.js ${versions[protocolVersion]}: ${text}`;

  test(title("nine combinations of quality of service"), async (context) => {
    const join = clientsOf(context);
    const name = uniqueName();
    const publisher = await join({ protocolVersion });
    for (const subscribed of [0, 1, 2]) {
      const subscriber = await join({ protocolVersion });
      const topic = `${name}/${subscribed}`;
      assert.deepEqual(await subscriber.subscribe(topic, { qos: subscribed }), [subscribed]);
      for (const published of [0, 1, 2]) {
        await publisher.publish(topic, `q${published}`, { qos: published });
        const message = await subscriber.next();
        assert.equal(message.payload, `q${published}`);
        assert.equal(message.qos, Math.min(published, subscribed));
        assert.equal(message.retain, false);
      }
      assert.equal(subscriber.messages.length, 0);
    }
  });

  for (const qos of [0, 1, 2]) {
    test(title(`empty and 200 KB payloads, QoS ${qos}`), async (context) => {
      const join = clientsOf(context);
      const topic = uniqueName();
      const client = await join({ protocolVersion });
      await client.subscribe(topic, { qos });
      await client.publish(topic, "", { qos });
      assert.equal((await client.next()).bytes.length, 0);
      const large = Buffer.alloc(204_800, "0123456789abcdef");
      await client.publish(topic, large, { qos });
      assert.ok((await client.next()).bytes.equals(large));
    });
  }

  // Before 5.0 a server cannot announce how many it accepts at once, so it has to accept all.
  // MQTT.js leaves the receive maximum of 5.0 to its user.
  const inFlight = protocolVersion === 5 ? 10 : 300;
  const skip = inFlight === 300 && process.env.BROKER === "mosquitto" && "it drops some silently";
  test(title("many messages in flight stay in order"), { skip }, async (context) => {
    const join = clientsOf(context);
    const topic = uniqueName();
    const subscriber = await join({ protocolVersion });
    await subscriber.subscribe(topic, { qos: 2 });
    const publisher = await join({ protocolVersion });
    const sent = Array.from({ length: 300 }, (_, index) => String(index));
    for (let start = 0; start < sent.length; start += inFlight) {
      const some = sent.slice(start, start + inFlight);
      await Promise.all(some.map((payload) => publisher.publish(topic, payload, { qos: 2 })));
    }
    const received = (await subscriber.take(sent.length)).map((message) => message.payload);
    assert.deepEqual(received, sent);
  });

  test(title("retained message is replayed, replaced and cleared"), async (context) => {
    const join = clientsOf(context);
    const name = uniqueName();
    const publisher = await join({ protocolVersion });
    await publisher.publish(`${name}/state`, "one", { qos: 1, retain: true });
    await publisher.publish(`${name}/state`, "two", { qos: 1, retain: true });
    const subscriber = await join({ protocolVersion });
    await subscriber.subscribe(`${name}/#`, { qos: 1 });
    const replayed = await subscriber.next();
    assert.deepEqual([replayed.payload, replayed.retain], ["two", true]);
    await publisher.publish(`${name}/state`, "", { qos: 1, retain: true });
    const cleared = await subscriber.next();
    assert.deepEqual([cleared.payload, cleared.retain], ["", false]);
    const later = await join({ protocolVersion });
    await later.subscribe(`${name}/#`, { qos: 1 });
    await publisher.publish(`${name}/end`, "end", { qos: 1 });
    assert.deepEqual(await later.until("end"), []);
  });

  test(title("will after an abnormal end only"), async (context) => {
    const join = clientsOf(context);
    const name = uniqueName();
    const watcher = await join({ protocolVersion });
    await watcher.subscribe(`${name}/#`, { qos: 2 });
    const will = { topic: `${name}/will`, payload: Buffer.from("gone"), qos: 2, retain: false };
    await (await join({ protocolVersion, will })).end();
    await watcher.publish(`${name}/end`, "end", { qos: 1 });
    assert.deepEqual(await watcher.until("end"), []);
    await (await join({ protocolVersion, will })).kill();
    const message = await watcher.next("will");
    assert.deepEqual([message.topic, message.payload, message.qos], [`${name}/will`, "gone", 2]);
  });

  test(title("session keeps subscriptions and queued messages in order"), async (context) => {
    const join = clientsOf(context);
    const name = uniqueName();
    const options = { protocolVersion, clientId: name, ...kept(protocolVersion) };
    const first = await join(options);
    assert.equal(first.connack.sessionPresent, false);
    await first.subscribe(`${name}/+`, { qos: 2 });
    await first.end();
    const publisher = await join({ protocolVersion });
    const sent = [];
    for (let index = 0; index < 20; index += 1) {
      await publisher.publish(`${name}/${1 + (index % 2)}`, String(index), { qos: 1 + (index % 2) });
      sent.push(String(index));
    }
    const second = await join(options);
    if (protocolVersion !== 3) assert.equal(second.connack.sessionPresent, true);
    const received = (await second.take(20)).map((message) => message.payload);
    const parity = (list, rest) => list.filter((each) => Number(each) % 2 === rest);
    assert.deepEqual(parity(received, 0), parity(sent, 0));
    assert.deepEqual(parity(received, 1), parity(sent, 1));
    await second.end();
    const clean = await join({ protocolVersion, clientId: name, clean: true });
    assert.equal(clean.connack.sessionPresent, false);
  });

  test(title("shared subscription hands each message to one member"), async (context) => {
    const join = clientsOf(context);
    const name = uniqueName();
    const members = await Promise.all([0, 1, 2].map(() => join({ protocolVersion })));
    for (const member of members) {
      await member.subscribe([`$share/g/${name}/+`, `${name}-end`], { qos: 1 });
    }
    const publisher = await join({ protocolVersion });
    const sent = Array.from({ length: 60 }, (_, index) => String(index));
    for (const payload of sent) await publisher.publish(`${name}/work`, payload, { qos: 1 });
    await publisher.publish(`${name}-end`, "end", { qos: 1 });
    const shares = await Promise.all(members.map((member) => member.until("end")));
    assert.ok(shares.every((share) => share.length > 0), "every member got something");
    const received = shares.flat().map((message) => Number(message.payload));
    assert.deepEqual(received.sort((a, b) => a - b), sent.map(Number));
  });

  test(title("second connection takes the client identifier over"), async (context) => {
    const join = clientsOf(context);
    const clientId = uniqueName();
    const first = await join({ protocolVersion, clientId });
    const second = await join({ protocolVersion, clientId });
    await first.closed.take("close of the first connection");
    if (protocolVersion === 5 && process.env.BROKER !== "mosquitto") {
      assert.equal(await first.disconnects.take("reason"), 0x8e);
    }
    await second.subscribe(clientId, { qos: 1 });
    await second.publish(clientId, "x", { qos: 1 });
    assert.equal((await second.next()).payload, "x");
  });

  test(title("wildcards and topics of the server"), async (context) => {
    const join = clientsOf(context);
    const name = uniqueName();
    const client = await join({ protocolVersion });
    await client.subscribe([`${name}/+/c`, `${name}-end`], { qos: 1 });
    for (const topic of ["a/b/c", "a/c", "/c", "c"]) {
      await client.publish(`${name}/${topic}`, topic, { qos: 1 });
    }
    await client.publish(`${name}-end`, "end", { qos: 1 });
    assert.deepEqual((await client.until("end")).map((message) => message.payload), ["a/c", "/c"]);
    await client.subscribe("$SYS/broker/version");
    assert.equal((await client.next()).topic, "$SYS/broker/version");
  });

  test(title("pings keep a quiet client connected"), async (context) => {
    const join = clientsOf(context);
    const name = uniqueName();
    const client = await join({ protocolVersion, keepalive: 1, reschedulePings: false });
    await client.subscribe(name, { qos: 1 });
    const pongs = [];
    client.mqtt.on("packetreceive", (packet) => packet.cmd === "pingresp" && pongs.push(packet));
    while (pongs.length < 3) await withDeadline(once(client.mqtt, "packetreceive"), "PINGRESP");
    await client.publish(name, "still here", { qos: 1 });
    assert.equal((await client.next()).payload, "still here");
  });
}

test("a peer that says nothing after the handshake of TCP is no burden", async () => {
  const { hostname, port } = new URL(url);
  const sockets = Array.from({ length: 20 }, () => connectTcp(Number(port), hostname));
  await Promise.all(sockets.map((socket) => once(socket, "connect")));
  for (const socket of sockets) socket.destroy();
});
