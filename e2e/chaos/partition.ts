import { spawnSync } from 'node:child_process';
import { startTcpProxy } from '@runhook/testing';
import { type Place, type SentinelServers, startRecord, startSentinels } from './redis-sentinel.ts';
import { Releases } from './releases.ts';
import { makeFolder } from './servers.ts';
import type { OtherDispatcher } from './world.ts';

/*
 *   side A: the first master, a sentinel, a dispatcher   |   side B: the replica, two sentinels, everything else
 *
 * Each of `master`, `dispatcher` and `replica` is a network namespace; everything else is in the namespace of the tests, which is
 * separate, too. The sides are two bridges with a link between them, which can be cut. The dispatcher connects to the record and the
 * endpoints through a second network, and publishers on the side of the first master through a third.
 */
const QUEUE_NET = '10.99.0';
const RECORD_NET = '10.98.0';
const BESIDE_NET = '10.97.0';
const LINE = ['line-a', 'line-b'];
const RECORD_LINE = 'record-leg';

export interface PartitionServers extends SentinelServers {
  /** Cuts the link between the sides. @param withRecord also cuts side A from the record and the endpoints */
  cut(withRecord: boolean): void;
  heal(): void;
  /** Connects side A to the record again. */
  healRecord(): void;
  /** URL of the first master for publishers on its side. */
  besideUrl: string;
  /** The dispatcher on side A. */
  first: OtherDispatcher;
  /** Address that the endpoint must listen on, so that both sides can connect to it. */
  endpointHost: string;
  /** Additional environment of the services. */
  environment: Record<string, string>;
}

/** Returns the reason why namespaces are unavailable, or null. `npm run chaos -- --topology` runs in a separate network. */
export function whyNoNetwork(): string | null {
  const reason = process.env.CHAOS_NO_NETWORK ?? 'npm run chaos -- --topology partition makes the network';
  return reason === '' ? null : reason;
}

export async function startPartitionServers(): Promise<PartitionServers> {
  const releases = new Releases();
  try {
    const folder = await makeFolder(releases);
    layNetwork(releases);
    const databaseUrl = await startRecord(folder, releases);
    const record = await startTcpProxy(databaseUrl, `${RECORD_NET}.1`);
    releases.add(() => record.close());
    const master = placeOf('master', 11);
    const replica = placeOf('replica', 21);
    const servers = await startSentinels({
      folder,
      databaseUrl,
      releases,
      confOfServers: ['bind 0.0.0.0'],
      places: { master, replica, sentinels: [master, replica, replica] },
    });
    return {
      ...servers,
      besideUrl: `redis://${BESIDE_NET}.11:${servers.firstPort}`,
      cut(withRecord) {
        ip('link', 'set', LINE[0] as string, 'down');
        if (withRecord) ip('link', 'set', RECORD_LINE, 'down');
      },
      heal() {
        ip('link', 'set', LINE[0] as string, 'up');
      },
      healRecord() {
        ip('link', 'set', RECORD_LINE, 'up');
      },
      first: {
        within: within('dispatcher'),
        // A low concurrency limits the jobs that this dispatcher has taken; the other jobs of its side exist on its master only.
        environment: { DATABASE_URL: record.url, DELIVERY_CONCURRENCY: '50' },
      },
      endpointHost: `${RECORD_NET}.1`,
      environment: { EGRESS_ALLOW_CIDRS: `127.0.0.0/8,${RECORD_NET}.0/24` },
    };
  } catch (error) {
    await releases.run();
    throw error;
  }
}

const within = (namespace: string) => ['ip', 'netns', 'exec', namespace];
const placeOf = (namespace: string, host: number): Place => ({
  host: `${QUEUE_NET}.${host}`,
  within: within(namespace),
});

function layNetwork(releases: Releases): void {
  for (const [bridge, address] of [
    ['side-a', `${BESIDE_NET}.1`],
    ['side-b', `${QUEUE_NET}.1`],
    ['record', `${RECORD_NET}.1`],
  ] as const) {
    ip('link', 'add', bridge, 'type', 'bridge');
    releases.add(async () => ip('link', 'delete', bridge));
    ip('address', 'add', `${address}/24`, 'dev', bridge);
    ip('link', 'set', bridge, 'up');
  }
  ip('link', 'add', LINE[0] as string, 'type', 'veth', 'peer', 'name', LINE[1] as string);
  releases.add(async () => ip('link', 'delete', LINE[0] as string));
  for (const [index, end] of LINE.entries()) {
    ip('link', 'set', end, 'master', index === 0 ? 'side-a' : 'side-b');
    ip('link', 'set', end, 'up');
  }
  for (const namespace of ['master', 'dispatcher', 'replica']) {
    ip('netns', 'add', namespace);
    // Deleting the namespace also deletes its ends of the links.
    releases.add(async () => ip('netns', 'delete', namespace));
    ip('-n', namespace, 'link', 'set', 'lo', 'up');
  }
  plug('master', 'master-leg', 'side-a', [`${QUEUE_NET}.11`, `${BESIDE_NET}.11`]);
  plug('dispatcher', 'dispatcher-leg', 'side-a', [`${QUEUE_NET}.12`]);
  plug('dispatcher', RECORD_LINE, 'record', [`${RECORD_NET}.12`]);
  plug('replica', 'replica-leg', 'side-b', [`${QUEUE_NET}.21`]);
}

/** Links a bridge to a namespace; `name` is the bridge's end of the link. */
function plug(namespace: string, name: string, bridge: string, addresses: readonly string[]): void {
  const inside = bridge === 'record' ? 'record' : 'queue';
  ip('link', 'add', name, 'type', 'veth', 'peer', 'name', inside, 'netns', namespace);
  ip('link', 'set', name, 'master', bridge);
  ip('link', 'set', name, 'up');
  for (const address of addresses) ip('-n', namespace, 'address', 'add', `${address}/24`, 'dev', inside);
  ip('-n', namespace, 'link', 'set', inside, 'up');
}

function ip(...args: string[]): void {
  const { status, stderr, error } = spawnSync('ip', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`ip ${args.join(' ')}: ${error?.message ?? stderr}`);
}
