import { createSocket } from 'node:dgram';
import { once } from 'node:events';

/** Addresses of a name, with the time to live; `silent` never responds, `broken` responds SERVFAIL. */
export type Entry = { a?: string; aaaa?: string | 'silent'; ttlSeconds?: number } | 'silent' | 'broken';

export interface DnsServer {
  /** Address in the format of `Resolver.setServers`. */
  address: string;
  /** All queries received, as `name type`: 1 is A, 28 is AAAA. */
  questions: string[];
  /** Responds that the name does not exist to all queries that got no response. */
  respondToAll(): void;
  close(): Promise<void>;
}

/** Starts a DNS server for the names of the zone; every other name does not exist. @param zone called for each query */
export async function startDnsServer(
  zone: (name: string, type: number) => Entry | undefined,
): Promise<DnsServer> {
  const server = createSocket('udp4');
  const questions: string[] = [];
  const unanswered: (() => void)[] = [];
  server.on('message', (query, { port, address }) => {
    const { name, type } = readQuestion(query);
    questions.push(`${name} ${type}`);
    const respond = (code: number, data: Buffer | null = null, ttlSeconds = 60) =>
      server.send(reply(query, code, data, ttlSeconds), port, address);
    const entry = zone(name, type);
    if (entry === undefined) return respond(NO_SUCH_NAME);
    if (entry === 'broken') return respond(SERVER_FAILED);
    if (entry === 'silent' || (type === AAAA && entry.aaaa === 'silent')) {
      unanswered.push(() => respond(NO_SUCH_NAME));
      return;
    }
    return respond(0, type === AAAA ? ipv6Bytes(entry.aaaa) : ipv4Bytes(entry.a), entry.ttlSeconds);
  });
  server.bind(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    address: `127.0.0.1:${server.address().port}`,
    questions,
    respondToAll() {
      for (const respond of unanswered.splice(0)) respond();
    },
    async close() {
      await new Promise<void>((resolve) => server.close(resolve));
    },
  };
}

/** Record type and response code of DNS. */
const AAAA = 28;
const SERVER_FAILED = 2;
const NO_SUCH_NAME = 3;

function readQuestion(query: Buffer): { name: string; type: number } {
  const labels: string[] = [];
  let at = 12;
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString('latin1', at + 1, at + 1 + length));
    at += 1 + length;
  }
  return { name: labels.join('.').toLowerCase(), type: query.readUInt16BE(at + 1) };
}

/** Builds a response from the query: header, question, and at most one record that points to the question's name. */
function reply(query: Buffer, code: number, data: Buffer | null, ttlSeconds: number): Buffer {
  let questionEnd = 12;
  while ((query[questionEnd] ?? 0) > 0) questionEnd += 1 + (query[questionEnd] ?? 0);
  questionEnd += 5;
  const header = Buffer.from(query.subarray(0, 12));
  header.writeUInt16BE(0x8180 | code, 2);
  header.writeUInt16BE(data === null ? 0 : 1, 6);
  header.writeUInt32BE(0, 8);
  const question = query.subarray(12, questionEnd);
  if (data === null) return Buffer.concat([header, question]);
  const record = Buffer.alloc(12);
  record.writeUInt16BE(0xc00c, 0);
  query.copy(record, 2, questionEnd - 4, questionEnd);
  record.writeUInt32BE(ttlSeconds, 6);
  record.writeUInt16BE(data.length, 10);
  return Buffer.concat([header, question, record, data]);
}

function ipv4Bytes(address: string | undefined): Buffer | null {
  return address === undefined ? null : Buffer.from(address.split('.').map(Number));
}

/** Requires all eight groups. */
function ipv6Bytes(address: string | undefined): Buffer | null {
  if (address === undefined) return null;
  const digits = address.split(':').map((part) => part.padStart(4, '0'));
  return Buffer.from(digits.join(''), 'hex');
}
