// Programs that send and receive a first message, with the address of this broker.

/** Where clients of MQTT reach the broker. */
export interface Address {
  host: string;
  port: number;
  /** Clients have to use TLS. */
  tls: boolean;
}

export type Way = 'shell' | 'python' | 'js' | 'esp32';

/** The address of the best listener: TCP before TLS. `pageHost` stands for addresses that mean all of a machine. */
export function addressOf(addresses: readonly string[], pageHost: string): Address | null {
  const found = addresses
    .map((text) => /^(mqtts?):\/\/(\[[^\]]+\]|[^:/]+)(?::(\d+))?/.exec(text))
    .filter((match) => match !== null);
  const match = found.find((one) => one[1] === 'mqtt') ?? found[0];
  if (!match) return null;
  const tls = match[1] === 'mqtts';
  const host = match[2] ?? '';
  const everywhere = host === '0.0.0.0' || host === '[::]';
  return {
    host: everywhere ? pageHost : host.replace(/^\[|\]$/g, ''),
    port: match[3] === undefined ? (tls ? 8883 : 1883) : Number(match[3]),
    tls,
  };
}

export function isLocal(host: string): boolean {
  return host === 'localhost' || host === '::1' || host.startsWith('127.');
}

export function listenCommand(at: Address): string {
  return `mosquitto_sub -h ${at.host}${portOption(at)}${at.tls ? ' --tls-use-os-certs' : ''} -t 'hello/#' -v`;
}

export function sendCommand(at: Address): string {
  return `mosquitto_pub -h ${at.host}${portOption(at)}${at.tls ? ' --tls-use-os-certs' : ''} -t hello/me -m 'Hello'`;
}

export function simulateCommand(at: Address): string {
  const scheme = at.tls ? 'mqtts' : 'mqtt';
  const host = at.host.includes(':') ? `[${at.host}]` : at.host;
  return `thrum bench p2p --pairs 50 --rate 1/s --duration 10m --target ${scheme}://${host}:${at.port}`;
}

export function installCommand(way: Exclude<Way, 'shell'>): string {
  if (way === 'python') return 'pip install paho-mqtt';
  return way === 'js' ? 'npm install mqtt' : 'arduino-cli lib install PubSubClient';
}

export function program(way: Exclude<Way, 'shell'>, at: Address): string {
  if (way === 'python') {
    return `import paho.mqtt.publish as publish

publish.single("hello/me", "Hello", hostname="${at.host}", port=${at.port}${at.tls ? ', tls={}' : ''})`;
  }
  if (way === 'js') {
    const scheme = at.tls ? 'mqtts' : 'mqtt';
    const host = at.host.includes(':') ? `[${at.host}]` : at.host;
    return `import mqtt from "mqtt"

const client = await mqtt.connectAsync("${scheme}://${host}:${at.port}")
await client.publishAsync("hello/me", "Hello")
await client.endAsync()`;
  }
  return `#include <WiFi.h>
${at.tls ? '#include <WiFiClientSecure.h>\n' : ''}#include <PubSubClient.h>

${at.tls ? 'WiFiClientSecure' : 'WiFiClient'} net;
PubSubClient mqtt(net);

void setup() {
  WiFi.begin("your network", "its password");
  while (WiFi.status() != WL_CONNECTED) delay(100);
  ${at.tls ? 'net.setInsecure();  // for a first try only\n  ' : ''}mqtt.setServer("${at.host}", ${at.port});
  mqtt.connect("esp32");
  mqtt.publish("hello/me", "Hello");
}

void loop() { mqtt.loop(); }`;
}

function portOption(at: Address): string {
  return at.port === (at.tls ? 8883 : 1883) ? '' : ` -p ${at.port}`;
}
