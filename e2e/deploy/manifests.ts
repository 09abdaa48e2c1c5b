import { execFileSync, spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
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

/** Returns the program that renders overlays, with its version, or null. */
export function findRenderer(): { version: string; render: (overlay: string) => Manifest[] } | null {
  const candidates = [
    { file: 'kubectl', args: ['kustomize'], version: ['version', '--client'] },
    { file: 'kustomize', args: ['build'], version: ['version'] },
  ];
  for (const { file, args, version } of candidates) {
    const found = spawnSync(file, version, { encoding: 'utf8' });
    if (found.status !== 0) continue;
    return {
      version: `${file}: ${found.stdout.trim().replaceAll('\n', ', ')}`,
      render(overlay) {
        const folder = join(overlaysFolder, overlay);
        const text = execFileSync(file, [...args, folder], {
          encoding: 'utf8',
          stdio: ['ignore', 'pipe', 'ignore'],
        });
        return parseAllDocuments(text).map((document) => document.toJS() as Manifest);
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
