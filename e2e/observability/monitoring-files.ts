import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { parse } from 'yaml';

export interface Panel {
  title: string;
  type: string;
  targets?: { expr: string }[];
}

export interface AlertRule {
  alert: string;
  expr: string;
  labels: Record<string, string>;
  annotations: Record<string, string>;
}

export const monitoringFile = (name: string) =>
  fileURLToPath(new URL(`../../k8s/monitoring/${name}`, import.meta.url));

/** Returns every panel that has data. */
export function dashboardPanels(): Panel[] {
  const dashboard = JSON.parse(readFileSync(monitoringFile('dashboard.json'), 'utf8')) as { panels: Panel[] };
  return dashboard.panels.filter(({ type }) => type !== 'row');
}

export function alertRules(): AlertRule[] {
  const { groups } = parse(readFileSync(monitoringFile('alerts.yaml'), 'utf8')) as {
    groups: { rules: AlertRule[] }[];
  };
  return groups.flatMap(({ rules }) => rules);
}

/** Returns an expression as Grafana sends it: for all processes, and with a rate over a few scrapes. */
export function withoutVariables(expression: string): string {
  return expression.replaceAll('$__rate_interval', '10s').replaceAll('$instance', '.*');
}

/** Returns the anchors of a page's headings, as GitHub derives them. */
export function anchorsOf(page: string): Set<string> {
  const text = readFileSync(fileURLToPath(new URL(`../../${page}`, import.meta.url)), 'utf8');
  return new Set(
    [...text.matchAll(/^#+ (.+)$/gm)].map(([, heading]) =>
      (heading as string)
        .toLowerCase()
        .replace(/[^\w\- ]/g, '')
        .replaceAll(' ', '-'),
    ),
  );
}
