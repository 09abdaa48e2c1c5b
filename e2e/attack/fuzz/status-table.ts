import type { Operation } from './operations.ts';

/** Counts responses by route and status, and formats them as a table of Markdown. */
export class StatusTable {
  readonly #byRoute = new Map<string, Map<string, number>>();
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** @param status null without a response */
  add({ method, path }: Operation, status: number | null): void {
    const route = `${method} ${path}`;
    const statuses = this.#byRoute.get(route) ?? new Map<string, number>();
    const name = status === null ? 'none' : String(status);
    statuses.set(name, (statuses.get(name) ?? 0) + 1);
    this.#byRoute.set(route, statuses);
    this.#count += 1;
  }

  render(): string {
    const statuses = [...new Set([...this.#byRoute.values()].flatMap((found) => [...found.keys()]))].sort();
    const rows = [...this.#byRoute].map(([route, found]) => {
      const all = [...found.values()].reduce((sum, count) => sum + count, 0);
      return [route, String(all), ...statuses.map((status) => String(found.get(status) ?? ''))];
    });
    const lines = [['route', 'requests', ...statuses], ['---', '---', ...statuses.map(() => '---')], ...rows];
    return `${lines.map((cells) => `| ${cells.join(' | ')} |`).join('\n')}\n`;
  }
}
