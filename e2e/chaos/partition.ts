import { spawnSync } from 'node:child_process';
import { startTcpProxy } from '@runhook/testing';
import { CleanupStack } from './cleanup-stack.ts';
import { type SentinelServers, type ServerLocation, startRecord, startSentinels } from './redis-sentinel.ts';
import { makeFolder } from './servers.ts';
import type { OtherDispatcher } from './world.ts';

/*
 *   side A: the first master, a sentinel, a dispatcher   |   side B: the replica, two sentinels, everything else
 *
 * Each of `master`, `dispatcher` and `replica` is a network namespace; everything else is in the namespace of the tests, which is
 * separate, too. The sides are two bridges with a link between them, which can be cut. The dispatcher connects to the record and the
 * endpoints through a second network, and publishers on the side of the first master through a third.
 */
/** Address prefixes of the three networks, and names of the links between the namespaces. */
const QUEUE_NET = '10.99.0';
const RECORD_NET = '10.98.0';
const PUBLISHER_NET = '10.97.0';
const BRIDGE_LINK = ['line-a', 'line-b'];
const RECORD_LINK = 'record-leg';

export interface PartitionServers extends SentinelServers {
  /** Cuts the link between the sides. @param withRecord also cuts side A from the record and the endpoints */
  cut(withRecord: boolean): void;
  heal(): void;
  /** Connects side A to the record again. */
  healRecord(): void;
  /** URL of the first master for publishers on side A. */
  oldMasterUrl: string;
  /** The dispatcher on side A. */
  firstDispatcher: OtherDispatcher;
  /** Address that the endpoint must listen on, so that both sides can connect to it. */
  endpointHost: string;
  /** Additional environment of the services. */
  environment: Record<string, string>;
}

/** Returns the reason why namespaces are unavailable, or null. `npm run chaos -- --topology` runs in a separate network. */
export function networkSkipReason(): string | null {
  const reason = process.env.CHAOS_NO_NETWORK ?? 'npm run chaos -- --topology partition makes the network';
  return reason === '' ? null : reason;
}

export async function startPartitionServers(): Promise<PartitionServers> {
  const cleanup = new CleanupStack();
  try {
    const folder = await makeFolder(cleanup);
    createNetwork(cleanup);
    const databaseUrl = await startRecord(folder, cleanup);
    const record = await startTcpProxy(databaseUrl, `${RECORD_NET}.1`);
    cleanup.add(() => record.close());
    const master = createLocation('master', 11);
    const replica = createLocation('replica', 21);
    const servers = await startSentinels({
      folder,
      databaseUrl,
      cleanup,
      serverConfig: ['bind 0.0.0.0'],
      locations: { master, replica, sentinels: [master, replica, replica] },
    });
    return {
      ...servers,
      oldMasterUrl: `redis://${PUBLISHER_NET}.11:${servers.firstPort}`,
      cut(withRecord) {
        ip('link', 'set', BRIDGE_LINK[0] as string, 'down');
        if (withRecord) ip('link', 'set', RECORD_LINK, 'down');
      },
      heal() {
        ip('link', 'set', BRIDGE_LINK[0] as string, 'up');
      },
      healRecord() {
        ip('link', 'set', RECORD_LINK, 'up');
      },
      firstDispatcher: {
        commandPrefix: namespaceCommand('dispatcher'),
        // A low concurrency limits the jobs that this dispatcher has taken; the other jobs of its side exist on its master only.
        environment: { DATABASE_URL: record.url, DELIVERY_CONCURRENCY: '50' },
      },
      endpointHost: `${RECORD_NET}.1`,
      environment: { EGRESS_ALLOW_CIDRS: `127.0.0.0/8,${RECORD_NET}.0/24` },
    };
  } catch (error) {
    await cleanup.run();
    throw error;
  }
}

const namespaceCommand = (namespace: string) => ['ip', 'netns', 'exec', namespace];
const createLocation = (namespace: string, host: number): ServerLocation => ({
  host: `${QUEUE_NET}.${host}`,
  within: namespaceCommand(namespace),
});

function createNetwork(cleanup: CleanupStack): void {
  for (const [bridge, address] of [
    ['side-a', `${PUBLISHER_NET}.1`],
    ['side-b', `${QUEUE_NET}.1`],
    ['record', `${RECORD_NET}.1`],
  ] as const) {
    ip('link', 'add', bridge, 'type', 'bridge');
    cleanup.add(async () => ip('link', 'delete', bridge));
    ip('address', 'add', `${address}/24`, 'dev', bridge);
    ip('link', 'set', bridge, 'up');
  }
  ip('link', 'add', BRIDGE_LINK[0] as string, 'type', 'veth', 'peer', 'name', BRIDGE_LINK[1] as string);
  cleanup.add(async () => ip('link', 'delete', BRIDGE_LINK[0] as string));
  for (const [index, end] of BRIDGE_LINK.entries()) {
    ip('link', 'set', end, 'master', index === 0 ? 'side-a' : 'side-b');
    ip('link', 'set', end, 'up');
  }
  for (const namespace of ['master', 'dispatcher', 'replica']) {
    ip('netns', 'add', namespace);
    // Deleting the namespace also deletes its ends of the links.
    cleanup.add(async () => ip('netns', 'delete', namespace));
    ip('-n', namespace, 'link', 'set', 'lo', 'up');
  }
  connectNamespace('master', 'master-leg', 'side-a', [`${QUEUE_NET}.11`, `${PUBLISHER_NET}.11`]);
  connectNamespace('dispatcher', 'dispatcher-leg', 'side-a', [`${QUEUE_NET}.12`]);
  connectNamespace('dispatcher', RECORD_LINK, 'record', [`${RECORD_NET}.12`]);
  connectNamespace('replica', 'replica-leg', 'side-b', [`${QUEUE_NET}.21`]);
}

/** Links a bridge to a namespace; `name` is the bridge's end of the link. */
function connectNamespace(
  namespace: string,
  name: string,
  bridge: string,
  addresses: readonly string[],
): void {
  const interfaceName = bridge === 'record' ? 'record' : 'queue';
  ip('link', 'add', name, 'type', 'veth', 'peer', 'name', interfaceName, 'netns', namespace);
  ip('link', 'set', name, 'master', bridge);
  ip('link', 'set', name, 'up');
  for (const address of addresses)
    ip('-n', namespace, 'address', 'add', `${address}/24`, 'dev', interfaceName);
  ip('-n', namespace, 'link', 'set', interfaceName, 'up');
}

function ip(...args: string[]): void {
  const { status, stderr, error } = spawnSync('ip', args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`ip ${args.join(' ')}: ${error?.message ?? stderr}`);
}
