import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseAllDocuments } from 'yaml';

export const checkout = fileURLToPath(new URL('../..', import.meta.url));
const overlaysFolder = join(checkout, 'k8s', 'overlays');

/** An object of the cluster. The tests check it against the schemas before they read it. */
export interface Manifest {
  apiVersion: string;
  kind: string;
  metadata: {
    name: string;
    namespace?: string;
    labels?: Record<string, string>;
    annotations?: Record<string, string>;
  };
  // biome-ignore lint/suspicious/noExplicitAny: the schema of its kind determines its shape
  [field: string]: any;
}

export const overlays = readdirSync(overlaysFolder).sort();

/** The ranges of the tests; those of k8s/chart/ci are the same. */
const TRUSTED_PROXIES = 'TRUSTED_PROXY_CIDRS=10.64.8.0/24\n';

export interface Renderer {
  version: string;
  /** @param trustedProxies content of the file that an operator must create; null omits it */
  render: (overlay: string, trustedProxies?: string | null) => Manifest[];
}

/** Returns the program that renders overlays, with its version, or null. */
export function findRenderer(): Renderer | null {
  const candidates = [
    { file: 'kubectl', args: ['kustomize'], version: ['version', '--client'] },
    { file: 'kustomize', args: ['build'], version: ['version'] },
  ];
  for (const { file, args, version } of candidates) {
    const found = spawnSync(file, version, { encoding: 'utf8' });
    if (found.status !== 0) continue;
    return {
      version: `${file}: ${found.stdout.trim().replaceAll('\n', ', ')}`,
      render(overlay, trustedProxies = TRUSTED_PROXIES) {
        const folder = mkdtempSync(join(tmpdir(), 'runhook-k8s-'));
        try {
          cpSync(join(checkout, 'k8s'), folder, { recursive: true });
          if (trustedProxies !== null)
            writeFileSync(join(folder, 'production-base', 'trusted-proxies.env'), trustedProxies);
          const text = execFileSync(file, [...args, join(folder, 'overlays', overlay)], {
            encoding: 'utf8',
            stdio: 'pipe',
          });
          return parseAllDocuments(text).map((document) => document.toJS() as Manifest);
        } finally {
          rmSync(folder, { recursive: true });
        }
      },
    };
  }
  return null;
}

/** Returns the pod template of a manifest, or null if it creates no pods. */
export function podTemplateOf(manifest: Manifest): Manifest | null {
  const hasPods = ['Deployment', 'StatefulSet', 'Job'].includes(manifest.kind);
  return hasPods ? (manifest.spec.template as Manifest) : null;
}

export function selects(
  selector: { matchLabels?: Record<string, string> },
  labels: Record<string, string> = {},
) {
  return Object.entries(selector.matchLabels ?? {}).every(([name, value]) => labels[name] === value);
}
