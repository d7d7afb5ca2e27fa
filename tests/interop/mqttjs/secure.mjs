// A program for test_security_transports.py: exchanges one message over the URL, as the user and with the authority's
// certificate that it is given, and prints it.
import { readFileSync } from "node:fs";
import mqtt from "mqtt";

const [url, caFile, username, password] = process.argv.slice(2);
const client = await mqtt.connectAsync(url, {
  protocolVersion: 5,
  reconnectPeriod: 0,
  connectTimeout: 8_000,
  ca: caFile ? readFileSync(caFile) : undefined,
  username,
  password,
});
client.on("message", (topic, payload) => {
  console.log(`${topic} ${payload}`);
  client.end();
});
await client.subscribeAsync("mqttjs/#", { qos: 1 });
await client.publishAsync("mqttjs/a", "over " + new URL(url).protocol, { qos: 1 });
