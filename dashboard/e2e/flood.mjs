// Publishes to many topics at a steady rate, until it is ended.
//   node e2e/flood.mjs PORT TOPICS MESSAGES-A-SECOND
import { connect } from 'node:net';

const [port, topics, rate] = process.argv.slice(2).map(Number);
const TICK_MS = 20;

const text = (value) =>
  Buffer.concat([Buffer.from([value.length >> 8, value.length & 255]), Buffer.from(value)]);
const packet = (first, body) =>
  Buffer.concat([
    Buffer.from(
      body.length < 128 ? [first, body.length] : [first, (body.length & 127) | 128, body.length >> 7],
    ),
    body,
  ]);

const socket = connect(port, '127.0.0.1');
socket.on('error', () => process.exit(1));
socket.write(packet(0x10, Buffer.concat([text('MQTT'), Buffer.from([4, 2, 0, 0]), text('flood')])));
let sent = 0;
let begin = 0;
socket.once('data', () => {
  begin = performance.now();
  setInterval(() => {
    const due = Math.min(((performance.now() - begin) * rate) / 1000 - sent, rate);
    const batch = [];
    for (let n = 0; n < due; n += 1, sent += 1) {
      const topic = sent % topics;
      batch.push(
        packet(
          0x30,
          Buffer.concat([
            text(
              `plant/${topic % 50}/line/${Math.floor(topic / 50) % 100}/sensor/${Math.floor(topic / 5000)}`,
            ),
            Buffer.from(`{"t":${(20 + Math.sin(sent / 1000)).toFixed(2)}}`),
          ]),
        ),
      );
    }
    socket.write(Buffer.concat(batch));
  }, TICK_MS);
});
