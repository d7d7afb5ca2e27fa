// Stands in front of a broker, as a proxy does that has it below a path; with "built" it serves the pages of
// dist/site/ instead of those of the broker.
//   node e2e/server.mjs BROKER-PORT PORT [/SUB/PATH] [built]
import { createReadStream, existsSync, statSync } from 'node:fs';
import { createServer, request } from 'node:http';
import { connect } from 'node:net';
import { extname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';

const [brokerPort, port, below = '', pages = ''] = process.argv.slice(2);
const dist = fileURLToPath(new URL('../dist/site/', import.meta.url));
const TYPES = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
};
// The header that the broker sends with its own pages.
const POLICY = "default-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

createServer((question, answer) => {
  let path = question.url ?? '/';
  if (below !== '') {
    if (!path.startsWith(`${below}/`)) {
      answer.writeHead(404).end();
      return;
    }
    path = path.slice(below.length);
  }
  const name = path.split('?')[0] ?? '/';
  const file = join(dist, normalize(name === '/' || name === '/setup' ? 'index.html' : name));
  if (pages === 'built' && file.startsWith(dist) && existsSync(file) && statSync(file).isFile()) {
    answer.writeHead(200, {
      'content-type': TYPES[extname(file)] ?? 'application/octet-stream',
      'content-security-policy': POLICY,
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
    });
    createReadStream(file).pipe(answer);
    return;
  }
  const onward = request(
    { host: '127.0.0.1', port: Number(brokerPort), path, method: question.method, headers: question.headers },
    (reply) => {
      answer.writeHead(reply.statusCode ?? 502, reply.headers);
      // A stream begins with its head, before its first event.
      answer.flushHeaders();
      reply.pipe(answer);
      reply.on('error', () => answer.destroy());
    },
  );
  onward.on('error', () => (answer.headersSent ? answer.destroy() : answer.writeHead(502).end()));
  answer.on('close', () => onward.destroy());
  question.pipe(onward);
})
  // A WebSocket: the request goes on as it is, and then the bytes of both sides.
  .on('upgrade', (question, socket, head) => {
    if (!question.url.startsWith(below)) {
      socket.destroy();
      return;
    }
    const onward = connect(Number(brokerPort), '127.0.0.1', () => {
      const lines = [`GET ${question.url.slice(below.length)} HTTP/1.1`];
      for (let at = 0; at < question.rawHeaders.length; at += 2)
        lines.push(`${question.rawHeaders[at]}: ${question.rawHeaders[at + 1]}`);
      onward.write(`${lines.join('\r\n')}\r\n\r\n`);
      onward.write(head);
      onward.pipe(socket);
      socket.pipe(onward);
    });
    onward.on('error', () => socket.destroy());
    socket.on('error', () => onward.destroy());
  })
  .listen(Number(port), '127.0.0.1');
